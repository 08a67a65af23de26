//go:build unix && !linux

package ensemble

import (
	"os/exec"
	"syscall"
)

// BindToParent does nothing: only Linux has a parent-death signal. The process
// stays in its parent's process group, so that at least a Ctrl-C ends both.
func BindToParent(*exec.Cmd) {}

// freeze stops all threads of the process, at once or a moment later.
func (p *process) freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// thaw continues a frozen process.
func (p *process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
