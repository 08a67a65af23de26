package repository_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePitfallsHaveTheirTests(t *testing.T) {
	table, err := os.ReadFile("testdata/pitfalls.txt")
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if number++; !strings.HasPrefix(line, fmt.Sprintf("%d: ", number)) {
			t.Fatalf("pitfall %d is missing before %s", number, line)
		}
		parts := strings.Split(strings.TrimSpace(line), " | ")
		if len(parts) < 2 {
			t.Errorf("no test for %s", line)
		}
		for _, part := range parts[1:] {
			folder, function, ok := strings.Cut(part, " ")
			if !ok || !declares(t, folder, function) {
				t.Errorf("%s: %s has no test %s", parts[0], folder, function)
			}
		}
	}
}

// declares reports whether the Go files of a folder have a function, or a sentence of the contract,
// with this name.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") || strings.Contains(string(text), "{\""+name+"\", ") {
			return true
		}
	}
	return false
}
