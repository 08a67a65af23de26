package job

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// stopProcess stops this process, and returns when it is continued. It returns at once if the
// process group is orphaned: no shell could continue this process then, so the system does not
// stop it.
//
// The signal is SIGTTOU, which stops a process as SIGTSTP does. After signal.Reset the runtime
// still catches SIGTSTP, and drops it. The signal is sent to this thread, so that the system
// delivers it before Tgkill returns.
func stopProcess() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGTTOU)
}
