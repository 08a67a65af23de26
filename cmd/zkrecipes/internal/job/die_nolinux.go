//go:build unix && !linux

package job

import "syscall"

// dieWithParent is nothing that this system can do.
func dieWithParent(*syscall.SysProcAttr) {}
