package scripttest

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// printTime is how long processes have to print their goroutines.
const printTime = 5 * time.Second

// quitAll sends SIGQUIT to the processes whose environment names dir. Go programs print
// their goroutines and end. A shell may ignore the signal.
func quitAll(dir string) {
	if !signalled(dir, syscall.SIGQUIT) {
		return
	}
	for end := time.Now().Add(printTime); time.Now().Before(end) && signalled(dir, 0); {
		time.Sleep(10 * time.Millisecond) // the end of another process's child causes no event
	}
}

// killAll kills the processes whose environment names dir, except this one. It repeats
// that until no such process is left, because a process may start another before it dies.
func killAll(dir string) {
	const rounds = 10 // a process that cannot be killed must not block the test
	for range rounds {
		if !signalled(dir, syscall.SIGKILL) {
			return
		}
	}
}

// signalled sends a signal to the processes whose environment names dir, except this one,
// and reports whether there are any. Signal 0 only checks.
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
		environ, err := os.ReadFile("/proc/" + p.Name() + "/environ") // the environment of a zombie is empty
		if err == nil && names(environ, dir) {
			any = syscall.Kill(pid, signal) == nil || any
		}
	}
	return any
}

// names reports whether an environment names dir or a path in it. A prefix is not enough:
// the directory of the script queue_put begins with that of queue.
func names(environ []byte, dir string) bool {
	for _, end := range []string{"\x00", "/"} {
		if bytes.Contains(append(environ, 0), []byte("="+dir+end)) {
			return true
		}
	}
	return false
}
