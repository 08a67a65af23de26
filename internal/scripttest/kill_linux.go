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
		if err == nil && bytes.Contains(environ, []byte("="+dir)) {
			any = syscall.Kill(pid, syscall.SIGKILL) == nil || any
		}
	}
	return any
}
