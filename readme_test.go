// Package zkrecipes_test keeps the README true.
package zkrecipes_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

func blocks(t *testing.T, language string) []string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	var block *strings.Builder
	for line := range strings.Lines(string(readme)) {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case !isFence && block != nil:
			block.WriteString(line)
		case isFence && block == nil:
			block = &strings.Builder{}
			block.WriteString(fence + "\n")
		case isFence:
			if text, ok := strings.CutPrefix(block.String(), language+"\n"); ok {
				found = append(found, text)
			}
			block = nil
		}
	}
	return found
}

func TestExamplesOfTheReadmeCompile(t *testing.T) {
	examples := blocks(t, "go")
	if len(examples) != 2 {
		t.Fatalf("%d examples", len(examples))
	}
	dir := t.TempDir()
	for i, example := range examples {
		file := filepath.Join(dir, fmt.Sprintf("example%d.go", i))
		if err := os.WriteFile(file, []byte(example), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput(); err != nil {
			t.Errorf("example %d:\n%s\n%s", i, example, out)
		}
	}
}

// What a newcomer does with the first example: build it beside the plugin, start it.
func TestTheFirstExampleOfTheReadmeWritesWhatItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the plugin")
	}
	server, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	dir := t.TempDir()
	example := filepath.Join(dir, "example.go")
	text := strings.ReplaceAll(blocks(t, "go")[0], "127.0.0.1:2181", server.Addr())
	if err := os.WriteFile(example, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"./cmd/zkrecipes-plugin", example} {
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir, source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "example"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if said := strings.Split(strings.TrimSpace(string(out)), "\n"); err != nil || len(said) != 1 || !strings.Contains(said[0], "holding with token") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The first command is run, and its table has the columns and rows that the
// README shows.
func TestTheFirstCommandOfTheReadmePrintsWhatItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the benchmark")
	}
	command := strings.TrimSpace(blocks(t, "sh")[0])
	if command != "go run ./cmd/zkbench" {
		t.Fatalf("the first command is %q", command)
	}
	var stdout, stderr bytes.Buffer
	// -count 1: the same experiment, a tenth of the time.
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/zkbench", "run", "-count", "1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	shape := func(table string) string {
		var lines []string
		for line := range strings.Lines(table) {
			fields := strings.Fields(line)
			if len(fields) > 5 && fields[0] == "recipe" {
				lines = append(lines, strings.Join(fields, " "))
			} else if len(fields) > 5 && fields[0] == "election" {
				lines = append(lines, strings.Join(fields[:5], " "))
			}
		}
		return strings.Join(lines, "\n")
	}
	want := shape(blocks(t, "")[0])
	if got := shape(stderr.String()); got != want || want == "" {
		t.Errorf("the table is\n%s\nthe README shows\n%s", got, want)
	}
}

func TestMakeTargetsOfTheReadmeExist(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks(t, "sh") {
		for line := range strings.Lines(block) {
			if target, ok := strings.CutPrefix(strings.TrimSpace(line), "make "); ok && !bytes.Contains(makefile, []byte("\n"+target+":")) {
				t.Errorf("the Makefile has no target %s", target)
			}
		}
	}
}
