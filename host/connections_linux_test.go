package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
