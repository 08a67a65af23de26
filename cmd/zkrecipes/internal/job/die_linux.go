package job

import "syscall"

// dieWithParent has the command killed when zkrecipes is: the hold is free at
// that moment, and the command must not go on.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
