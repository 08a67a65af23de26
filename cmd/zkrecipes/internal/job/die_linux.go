package job

import "syscall"

// dieWithParent makes the kernel kill the command when zkrecipes is killed. With -close, PATH
// is released at that moment, so the command must not continue. Without -close, PATH would
// stay held, but no process would end the command after a loss.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
