package ensemble

import (
	"fmt"
	"os/exec"
	"runtime"
)

// launcher starts processes from one operating system thread, which ends after they have
// ended. Linux sends a process its parent-death signal when the thread that forked it
// ends, not only when the parent process ends. The Go runtime can end a thread at any
// time, and that would kill a server that was started from an arbitrary goroutine.
type launcher struct {
	requests chan func()
	done     chan struct{}
}

func newLauncher() *launcher {
	l := &launcher{requests: make(chan func()), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *launcher) run() {
	defer close(l.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for request := range l.requests {
		request()
	}
}

// launch starts cmd in the network of host, on the launcher's thread. It must not be called
// after close.
func (l *launcher) launch(host Host, cmd *exec.Cmd) (*process, error) {
	BindToParent(cmd)
	started := make(chan error)
	l.requests <- func() { started <- host.Do(cmd.Start) }
	if err := <-started; err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// close ends the thread. All processes must have ended.
func (l *launcher) close() {
	close(l.requests)
	<-l.done
}

// process is one run of a server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and is reaped
	err  error         // how it ended; valid once done is closed
}

// kill kills the process, frozen or not, and waits until it has ended.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && p.running() {
		return fmt.Errorf("kill process %d: %w", p.pid(), err)
	}
	<-p.done
	return nil
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }
