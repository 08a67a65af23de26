package host

import (
	"os"
	"os/exec"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestAProcessIsFoundExitingWhenItsFilesAreClosed, which is before it can be waited for,
// and not while it runs.
func TestAProcessIsFoundExitingWhenItsFilesAreClosed(t *testing.T) {
	if yes, known := exiting(os.Getpid()); yes || !known {
		t.Errorf("this process: exiting %v, known %v", yes, known)
	}
	for range 20 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sleep", "1000")
		cmd.Stdout = w
		if err := cmd.Start(); err != nil {
			t.Skip(err)
		}
		_ = w.Close()
		if yes, known := exiting(cmd.Process.Pid); yes || !known {
			t.Errorf("it runs: exiting %v, known %v", yes, known)
		}
		must.Do(t, cmd.Process.Kill())
		_, _ = r.Read(make([]byte, 1)) // until the end
		if yes, known := exiting(cmd.Process.Pid); !yes || !known {
			t.Errorf("its files are closed: exiting %v, known %v", yes, known)
		}
		_, _ = cmd.Process.Wait()
		if yes, known := exiting(cmd.Process.Pid); !yes || !known {
			t.Errorf("it was waited for: exiting %v, known %v", yes, known)
		}
		_ = r.Close()
	}
}

func TestWhatTheSystemSaysOfAProcess(t *testing.T) {
	for _, tt := range []struct {
		stat       string
		yes, known bool
	}{
		{"7 (a) b) S 1 1 1 0 -1 4194560 0 0", false, true},
		{"7 (a) b) S 1 1 1 0 -1 4194564 0 0", true, true},
		{"7 (sleep) Z 1 1 1 0 -1 4194560 0 0", true, true},
		{"7 (sleep) X 1 1 1 0 -1 4194560 0 0", true, true},
		{"7 (sleep) S 1 1 1 0 -1 0 0 0", false, false},
		{"7 (sleep) S 1 1 1 0 -1 flags 0 0", false, false},
		{"7 (sleep) S 1", false, false},
		{"", false, false},
	} {
		if yes, known := saysExiting([]byte(tt.stat)); yes != tt.yes || known != tt.known {
			t.Errorf("%q: exiting %v, known %v", tt.stat, yes, known)
		}
	}
}
