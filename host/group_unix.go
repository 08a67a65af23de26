//go:build unix

package host

import "syscall"

// ownGroup gives the plugin its own process group. A terminal, a shell or timeout(1) sends
// signals to the host's whole group. Such a signal would end the plugin, and so the host's
// holds, before the host has stopped its work.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
