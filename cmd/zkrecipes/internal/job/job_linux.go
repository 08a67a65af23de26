package job

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ReapEnv is the environment variable that makes a process reap orphans although it is not the
// first process of its container.
const ReapEnv = "ZKRECIPES_REAP"

// Reap runs main, and returns its exit code.
//
// A process whose parent has ended becomes a child of the first process of its container. If that
// process does not reap it when it ends, it stays a zombie. So if this process is the first, or if
// ReapEnv is 1, main runs in a child process, and this process only reaps processes and passes
// signals on. The process of main does not reap, because it could not distinguish an orphan from a
// process whose exit status it awaits.
func Reap(main func() int) int {
	first := os.Getpid() == 1
	if !first && os.Getenv(ReapEnv) != "1" {
		return main()
	}
	// The kernel kills the child when the thread that started it ends.
	runtime.LockOSThread()
	child, err := inChild(first)
	if err != nil {
		fmt.Fprintf(os.Stderr, "zkrecipes: processes without a parent will stay as zombies: %v\n", err)
		return main()
	}
	return collect(child)
}

func inChild(first bool) (*os.Process, error) {
	if !first {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	attr := &os.ProcAttr{
		Env:   slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, ReapEnv+"=") }),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, // the child also inherits the descriptors that this process has inherited
		Sys:   new(syscall.SysProcAttr),
	}
	dieWithParent(attr.Sys)
	caught, pass := slices.Concat(relayed, suspending, continuing), func(s os.Signal) bool { return !dropped(s) }
	switch {
	case !atTerminal():
	case first: // the child gets the terminal's signals, and this process passes the others on
		tty, err := os.Open("/dev/tty")
		if err != nil {
			return nil, err
		}
		defer tty.Close()
		attr.Sys.Foreground, attr.Sys.Ctty = true, int(tty.Fd())
	default: // both processes get the terminal's signals, and a shell stops and continues both
		caught, pass = relayed, func(s os.Signal) bool { return !dropped(s) && !typed(s) }
	}
	signals := make(chan os.Signal, 16)
	for _, s := range caught {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	program, argv := renamed(self, os.Args)
	child, err := os.StartProcess(program, argv, attr)
	if err != nil {
		signal.Stop(signals)
		return nil, err
	}
	go func() { // until this process ends
		for s := range signals {
			if pass(s) {
				_ = child.Signal(s)
			}
		}
	}()
	return child, nil
}

// collect reaps each process that ends until child has ended, and returns child's exit code as a
// shell does.
func collect(child *os.Process) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR || pid != child.Pid && err == nil:
		case err != nil: // not possible: child has not been reaped
			return 1
		case status.Signaled():
			return ExitSignal + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}

// dieWithParent makes the kernel kill the command when zkrecipes is killed. With -close, PATH
// is released at that moment, so the command must not continue. Without -close, PATH would
// stay held, but no process would end the command after a loss.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// relayedHere are the signals that only Linux has: PWR, and the real-time signals. The C library
// keeps 32 and 33 for itself, and a Go program cannot catch 34, which is SIGRTMIN.
func relayedHere() (all []os.Signal) {
	for s := syscall.Signal(35); s <= 64; s++ {
		all = append(all, s)
	}
	return append(all, syscall.SIGPWR)
}

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
