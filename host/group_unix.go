//go:build unix

package host

import "syscall"

// ownGroup gives the plugin a process group of its own. A terminal, a shell or
// timeout(1) sends signals to the whole group of the host. Such a signal would end
// the plugin, and with it what the host holds, before the host has stopped its work.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
