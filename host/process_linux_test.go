package host_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
)

// TestLaunchesLeaveNothing launches, uses and ends plugins, each third one by
// killing it and each fourth by a start that fails. No file descriptor, child
// process, goroutine or file may be left.
func TestLaunchesLeaveNothing(t *testing.T) {
	launches := testall.Count(6, 200)
	tmp := shortTempDir(t)
	t.Setenv("TMPDIR", tmp)
	launchOnce(t, 1) // whatever is opened only once in a process
	before := belongings(t)
	for i := range launches {
		launchOnce(t, i)
		empty(t, tmp)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		after := belongings(t)
		if after.within(before) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after %d launches there is %+v; before there was %+v", launches, after, before)
		}
	}
	t.Logf("%d launches left nothing", launches)
}

func launchOnce(t *testing.T, i int) {
	t.Helper()
	if i%4 == 3 {
		if _, err := host.Launch(ctx(t), config(t, "dying")); err == nil {
			t.Fatal("launched")
		}
		return
	}
	p := launch(t, config(t, "plugin"))
	acquire(t, open(t, p, time.Minute))
	if i%3 == 2 {
		crash(t, p.PID())
		closes(t, "Exited", p.Exited())
		return
	}
	must.Report(t, p.Close(ctx(t)))
}

// things are what a process can leave behind.
type things struct {
	files, children, goroutines int
}

// within reports whether there is no more than before, in b. Something may have ended since.
func (a things) within(b things) bool {
	return a.files <= b.files && a.children <= b.children && a.goroutines <= b.goroutines
}

func belongings(t *testing.T) things {
	t.Helper()
	files := must.Get(os.ReadDir("/proc/self/fd"))(t)
	return things{files: len(files), children: children(t), goroutines: runtime.NumGoroutine()}
}

// children counts the processes whose parent is this one, zombies included.
func children(t *testing.T) (n int) {
	t.Helper()
	all := must.Get(os.ReadDir("/proc"))(t)
	for _, p := range all {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", p.Name()))
		if err != nil {
			continue // no process, or no longer
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}
