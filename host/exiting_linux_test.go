package host

import (
	"os"
	"os/exec"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestAProcessThatHasClosedItsFilesIsExiting: exiting reports it even before the process can
// be waited for. A running process is not exiting.
func TestAProcessThatHasClosedItsFilesIsExiting(t *testing.T) {
	expect := func(when string, pid int, want bool) {
		t.Helper()
		if yes, known := exiting(pid); yes != want || !known {
			t.Errorf("%s: exiting %v, known %v", when, yes, known)
		}
	}
	expect("this process", os.Getpid(), false)
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
		expect("running", cmd.Process.Pid, false)
		must.Do(t, cmd.Process.Kill())
		_, _ = r.Read(make([]byte, 1)) // blocks until the process closes its files
		expect("files closed", cmd.Process.Pid, true)
		_, _ = cmd.Process.Wait()
		expect("waited for", cmd.Process.Pid, true)
		_ = r.Close()
	}
}

func TestProcStatOfAnExitingProcess(t *testing.T) {
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
		if yes, known := parseExiting([]byte(tt.stat)); yes != tt.yes || known != tt.known {
			t.Errorf("%q: exiting %v, known %v", tt.stat, yes, known)
		}
	}
}
