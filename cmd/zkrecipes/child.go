package main

import (
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
)

// child is the command that runs under a grant. It has our stdin, stdout and
// stderr.
type child struct {
	cmd    *exec.Cmd
	alone  bool          // it has a process group of its own
	exited chan struct{} // closed when it was waited for
	gone   chan struct{} // closed when nothing of it is left, of a group of its own; else as exited
	life   *os.File      // of which gone tells; nil where it is exited
	told   atomic.Bool   // the group was told to end
}

// startChild starts the command; a goroutine waits for it.
func startChild(program string, argv, env []string) (*child, error) {
	c := &child{cmd: exec.Command(program, argv[1:]...), exited: make(chan struct{})}
	c.cmd.Args[0] = argv[0]
	c.cmd.Env = append(os.Environ(), env...)
	c.gone = c.exited
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.arrange()
	started := make(chan error)
	go func() { // until the command has ended
		// On Linux the command is to die with its parent, and to the kernel
		// that is the thread which started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.exited)
		err := c.cmd.Start()
		_ = c.life.Close() // the command has it
		started <- err
		if err == nil {
			_ = c.cmd.Wait()
		}
	}()
	return c, <-started
}
