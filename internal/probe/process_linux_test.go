package probe_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zkrecipes/zkrecipes/internal/probe"
)

func TestTheTimeOfAProcessIncludesEndedThreads(t *testing.T) {
	const work = 20 * time.Millisecond
	before, _ := probe.ProcessTime(os.Getpid())
	for thread := spentThread(work); unix.Tgkill(os.Getpid(), thread, 0) == nil; { // until it has ended
		runtime.Gosched()
	}
	if after, ok := probe.ProcessTime(os.Getpid()); !ok || after-before < work {
		t.Errorf("%v, %v; want %v at least", after-before, ok, work)
	}
}

// spentThread works on a thread that ends soon after, because its goroutine is locked to it.
func spentThread(work time.Duration) (thread int) {
	done := make(chan int)
	go func() {
		runtime.LockOSThread()
		thread := unix.Gettid()
		if thread == os.Getpid() { // the main thread never ends
			thread = spentThread(work)
			runtime.UnlockOSThread()
		} else {
			for end := threadTime() + work; threadTime() < end; {
			}
		}
		done <- thread
	}()
	return <-done
}

func threadTime() time.Duration {
	var used unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used)
	return time.Duration(used.Nano())
}

func TestAnEndedProcessHasNoTime(t *testing.T) {
	if used, ok := probe.ProcessTime(1 << 22); ok { // above the largest id
		t.Errorf("%v", used)
	}
}
