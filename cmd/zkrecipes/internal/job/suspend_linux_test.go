package job

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// TestOnlyAHeldCommandIsContinued: a command that is not held stays stopped until the caller ends
// it.
func TestOnlyAHeldCommandIsContinued(t *testing.T) {
	r, _ := NewRelay(t.Context())
	defer r.Stop()
	held := true
	j := must.Get(r.Start("/bin/sleep", []string{"sleep", "600"}, nil, nil, func() bool { return held }))(t)
	t.Cleanup(func() { j.Kill(); <-j.exited })
	stopped := func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", j.cmd.Process.Pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(rest, "T")
	}
	suspend := func() {
		r.continued.Store(time.Now().UnixNano()) // so that this process does not stop
		r.suspend()
	}
	if suspend(); stopped() {
		t.Error("the hold was not lost, but the command was not continued")
	}
	held = false
	suspend()
	for end := time.Now().Add(watchdog.Patience); !stopped(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the hold was lost, but the command was continued")
		}
	}
	j.ending.Store(true)
	if suspend(); stopped() {
		t.Error("the command was not continued, so that it can end")
	}
}
