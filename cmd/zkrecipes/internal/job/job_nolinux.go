//go:build unix && !linux

package job

import (
	"os"
	"syscall"
)

// stopProcess stops this process, and returns when it is continued. It returns at once if the
// process group is orphaned: no shell could continue this process then, so the system does not
// stop it. The signal is SIGTTOU, which stops a process as SIGTSTP does. After signal.Reset the
// runtime still catches SIGTSTP, and drops it.
func stopProcess() { _ = syscall.Kill(os.Getpid(), syscall.SIGTTOU) }

// dieWithParent does nothing: only Linux can do this.
func dieWithParent(*syscall.SysProcAttr) {}

func relayedHere() []os.Signal { return nil }

// Reap runs main, and returns its exit code.
func Reap(main func() int) int { return main() }
