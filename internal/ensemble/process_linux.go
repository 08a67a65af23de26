package ensemble

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// bindToParent has the kernel kill the process when its parent ends, and keeps
// it out of the parent's process group, so that a Ctrl-C leaves it to the parent
// to stop its servers in order.
func bindToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// freeze stops all threads of the process and returns when they have stopped.
func (p *process) freeze() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop process %d: %w", p.pid(), err)
	}
	return p.awaitStopped()
}

// awaitStopped returns when every thread has stopped: a signal is only noted
// when the call that sends it returns, and until then the server may still answer.
func (p *process) awaitStopped() error {
	for {
		var info unix.Siginfo
		// WNOWAIT leaves the process, and its end if that is what comes, to
		// the goroutine that waits for it.
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

// thaw lets a frozen process run on.
func (p *process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
