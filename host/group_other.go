//go:build !unix

package host

import "syscall"

// apart has nothing to do where there are no process groups.
func apart() *syscall.SysProcAttr { return nil }
