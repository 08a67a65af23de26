package scripttest

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// killAll kills the processes whose environment names dir, until there are none: a
// process that is being killed may start another. It does not kill itself.
func killAll(dir string) {
	const rounds = 10 // one that cannot be killed does not stop the test
	for range rounds {
		if !killed(dir) {
			return
		}
	}
}

// killed reports whether there was a process to kill.
func killed(dir string) (any bool) {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile("/proc/" + p.Name() + "/environ") // of a zombie it is empty
		if err == nil && names(environ, dir) {
			any = syscall.Kill(pid, syscall.SIGKILL) == nil || any
		}
	}
	return any
}

// names reports whether an environment names dir, or something in it. The directory
// of the script queue_put begins with that of queue.
func names(environ []byte, dir string) bool {
	for _, end := range []string{"\x00", "/"} {
		if bytes.Contains(append(environ, 0), []byte("="+dir+end)) {
			return true
		}
	}
	return false
}
