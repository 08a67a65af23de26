package scripttest

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// printTime is what processes have to print their goroutines.
const printTime = 5 * time.Second

// quitAll has the processes whose environment names dir print their goroutines, if they
// are Go programs, and end. A shell may ignore it.
func quitAll(dir string) {
	if !signalled(dir, syscall.SIGQUIT) {
		return
	}
	for end := time.Now().Add(printTime); time.Now().Before(end) && signalled(dir, 0); {
		time.Sleep(10 * time.Millisecond) // no event tells that another's child has ended
	}
}

// killAll kills the processes whose environment names dir, until there are none: a
// process that is being killed may start another. It does not kill itself.
func killAll(dir string) {
	const rounds = 10 // one that cannot be killed does not stop the test
	for range rounds {
		if !signalled(dir, syscall.SIGKILL) {
			return
		}
	}
}

// signalled sends a signal to the processes whose environment names dir, 0 for none, and
// reports whether there are any. It does not send it to this process.
func signalled(dir string, signal syscall.Signal) (any bool) {
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
			any = syscall.Kill(pid, signal) == nil || any
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
