package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const module = "github.com/zkrecipes/zkrecipes"

// An engineer who changes the path of a grant must read the functions through which an Acquire runs.
func TestAnAcquireRunsThroughFewFunctions(t *testing.T) {
	testall.Require(t)
	program := filepath.Join(t.TempDir(), "walk")
	covered := strings.Join([]string{"recipes/...", "host/...", "internal/rpc/...", "internal/feed", "internal/testing/walk"}, ","+module+"/")
	output(t, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"/"+covered, "-o", program, ".")
	for _, tt := range []struct {
		way              string
		functions, files int
	}{
		{"direct", 118, 30},
		{"plugin", 192, 60},
	} {
		// A ping or a timer in the background does not run during each of them.
		var folders []string
		for range 5 {
			folders = append(folders, t.TempDir())
		}
		output(t, program, append([]string{tt.way}, folders...)...)
		functions, files := -1, -1
		for _, folder := range folders {
			f, n := walked(t, folder)
			if functions < 0 || f < functions {
				functions, files = f, n
			}
		}
		t.Logf("%s: %d functions in %d files", tt.way, functions, files)
		if functions > tt.functions || files > tt.files {
			t.Errorf("%s: an Acquire runs through %d functions in %d files, more than %d in %d", tt.way, functions, files, tt.functions, tt.files)
		}
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// walked counts the functions that ran, and their files.
func walked(t *testing.T, folder string) (functions, files int) {
	in := map[string]bool{}
	for line := range strings.Lines(output(t, "go", "tool", "covdata", "func", "-i="+folder)) {
		fields := strings.Fields(line)
		file, _, ok := strings.Cut(fields[0], ":")
		if !ok || fields[len(fields)-1] == "0.0%" || strings.Contains(file, "/testing/") {
			continue
		}
		functions++
		in[file] = true
	}
	return functions, len(in)
}
