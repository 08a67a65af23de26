//go:build !unix

package host

import "syscall"

// ownGroup does nothing: the system has no process groups.
func ownGroup() *syscall.SysProcAttr { return nil }
