package main

import (
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
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
		{"direct", 107, 22}, // also creates the path
		{"again", 81, 20},
		{"plugin", 179, 44},
		{"plugin again", 153, 42},
	} {
		// A ping or a timer in the background does not run during each of them.
		var folders []string
		for range 5 {
			folders = append(folders, t.TempDir())
		}
		output(t, program, append([]string{tt.way}, folders...)...)
		var rooms map[string]int
		functions, files := -1, -1
		for _, folder := range folders {
			in, n := walked(t, folder)
			f := 0
			for _, count := range in {
				f += count
			}
			if functions < 0 || f < functions {
				rooms, functions, files = in, f, n
			}
		}
		t.Logf("%s: %d functions in %d files", tt.way, functions, files)
		for _, room := range slices.Sorted(maps.Keys(rooms)) {
			t.Logf("%4d in %s", rooms[room], room)
		}
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

// walked counts the functions that ran, by package, and their files.
func walked(t *testing.T, folder string) (functions map[string]int, files int) {
	functions, in := map[string]int{}, map[string]bool{}
	for line := range strings.Lines(output(t, "go", "tool", "covdata", "func", "-i="+folder)) {
		fields := strings.Fields(line)
		file, _, ok := strings.Cut(fields[0], ":")
		if !ok || fields[len(fields)-1] == "0.0%" || strings.Contains(file, "/testing/") {
			continue
		}
		functions[strings.TrimPrefix(path.Dir(file), module+"/")]++
		in[file] = true
	}
	return functions, len(in)
}
