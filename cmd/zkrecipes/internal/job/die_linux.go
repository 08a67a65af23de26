package job

import "syscall"

// dieWithParent makes the kernel kill the command when zkrecipes is killed. With -close the
// hold is free at that moment; otherwise nothing would end the command after a loss.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
