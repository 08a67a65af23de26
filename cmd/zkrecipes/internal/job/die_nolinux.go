//go:build unix && !linux

package job

import "syscall"

// dieWithParent does nothing: only Linux can do this.
func dieWithParent(*syscall.SysProcAttr) {}
