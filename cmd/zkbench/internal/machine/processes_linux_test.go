package machine

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// A trial of a tenth of a second would have only ten steps of a hundredth.
func TestTheServersProcessorTimeHasNoSteps(t *testing.T) {
	java := filepath.Join(t.TempDir(), "java")
	must.Do(t, os.WriteFile(java, []byte("#!/bin/sh\nwhile :; do :; done\n"), 0o700))
	cmd := exec.Command(java)
	must.Do(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	used := 0.0
	for used == 0 && t.Context().Err() == nil {
		used, _ = ServersCPU()
	}
	if steps := 100 * used; math.Abs(steps-math.Round(steps)) < 1e-6 {
		t.Errorf("%v s, a multiple of a hundredth", used)
	}
}

func TestADirectoryHasAFileSystem(t *testing.T) {
	for dir, want := range map[string]bool{"/": true, t.TempDir(): true, "/proc/self": true, "/no such directory": false} {
		if got := filesystem(dir); (got != "") != want {
			t.Errorf("%s: %q", dir, got)
		}
	}
	if got := filesystem("/proc/self"); got != "proc on proc" {
		t.Errorf("/proc: %q", got)
	}
}
