package ensemble

import (
	"fmt"
	"os/exec"
)

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
