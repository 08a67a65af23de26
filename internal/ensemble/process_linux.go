package ensemble

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// BindToParent makes the kernel kill the process when its parent ends. It also puts the
// process into its own group: after a Ctrl-C, the parent stops its servers in order. The thread
// that starts cmd must be locked to its goroutine until the process has ended: see launcher.
func BindToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// freeze stops all threads of the process, and returns after they have stopped.
func (p *process) freeze() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop process %d: %w", p.pid(), err)
	}
	return p.awaitStopped()
}

// awaitStopped returns after every thread has stopped. The system call that sends the
// signal returns earlier, while the server may still answer.
func (p *process) awaitStopped() error {
	for {
		var info unix.Siginfo
		// WNOWAIT leaves the process to be reaped by the goroutine that waits for its end.
		err := unix.Waitid(unix.P_PID, p.pid(), &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("wait until process %d has stopped: %w", p.pid(), err)
		case info.Code != cldStopped:
			return fmt.Errorf("process %d ended before it stopped", p.pid())
		}
		return nil
	}
}

// cldStopped is CLD_STOPPED of <signal.h>, which package unix does not have.
const cldStopped = 5

// thaw continues a frozen process.
func (p *process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
