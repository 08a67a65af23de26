//go:build unix

package job

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// A command may be ready for a signal before Start returns.
func TestSignalDuringStartReachesCommand(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	r, _ := NewRelay(t.Context())
	defer r.Stop()
	r.begin()
	j := must.Get(Start("/bin/sh", []string{"sh", "-c", `trap 'exit 7' USR1; : >"$READY"; while :; do sleep 0.01; done`}, []string{"READY=" + ready}, nil))(t)
	t.Cleanup(func() { j.Kill(); <-j.exited })
	for _, err := os.Stat(ready); err != nil; _, err = os.Stat(ready) {
		select {
		case <-time.After(5 * time.Millisecond): // polls, because it is another process
		case <-t.Context().Done():
			t.Fatal("the command is not ready")
		}
	}
	r.take(syscall.SIGUSR1)
	r.pass(j)
	<-j.exited
	if code := j.ExitCode(); code != 7 {
		t.Errorf("exit code %d; the signal was lost", code)
	}
}
