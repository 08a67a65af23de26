//go:build unix

package host

import "syscall"

// apart gives the plugin a process group of its own. What a terminal, a shell or
// timeout(1) sends to the whole group of the host would otherwise end the plugin,
// and with it what the host holds, while the host has yet to stop its work.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
