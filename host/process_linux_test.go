package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestLaunchesLeaveNothing launches, uses and ends plugins. It kills each third one, and each
// fourth one fails to start. No file descriptor, child process, goroutine or file may be left.
func TestLaunchesLeaveNothing(t *testing.T) {
	launches := testall.Count(6, 200)
	tmp := shortTempDir(t)
	t.Setenv("TMPDIR", tmp)
	launchOnce(t, 1) // opens the files that a process opens once
	before := countResources(t)
	for i := range launches {
		launchOnce(t, i)
		empty(t, tmp)
	}
	eventually(t, func() string {
		after := countResources(t)
		return unless(after.within(before), "after %d launches there is %+v; before there was %+v", launches, after, before)
	})
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

// resources counts what a process can leave behind.
type resources struct {
	files, children, goroutines int
}

// within reports whether a has no more of any resource than b.
func (a resources) within(b resources) bool {
	return a.files <= b.files && a.children <= b.children && a.goroutines <= b.goroutines
}

func countResources(t *testing.T) resources {
	t.Helper()
	files := must.Get(os.ReadDir("/proc/self/fd"))(t)
	return resources{files: len(files), children: children(t), goroutines: runtime.NumGoroutine()}
}

// children counts the processes whose parent is this one, zombies included.
func children(t *testing.T) (n int) {
	t.Helper()
	all := must.Get(os.ReadDir("/proc"))(t)
	for _, p := range all {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", p.Name()))
		if err != nil {
			continue // no process, or it has exited
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

// TestCallsHaveTheirOwnConnection: all sessions share one, and a plugin that supports only
// gRPC has none.
func TestCallsHaveTheirOwnConnection(t *testing.T) {
	with, without := launch(t, config(t, "plugin")), launch(t, config(t, "unary plugin"))
	for _, s := range []recipes.Client{open(t, with, time.Minute), open(t, with, time.Minute), open(t, without, time.Minute)} {
		must.Do(t, acquire(t, s).Release(ctx(t)))
	}
	eventually(t, func() string { // a connection that was closed keeps its socket for a moment
		got := sockets(t, with.PID()) - sockets(t, without.PID())
		return unless(got == 1, "the plugin has %d more sockets than one that supports only gRPC", got)
	})
}

// sockets returns how many sockets a process has open.
func sockets(t *testing.T, pid int) (n int) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
