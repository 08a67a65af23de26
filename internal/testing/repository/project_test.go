package repository_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

// The tests read the repository, so they run in its root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	leaktest.Main(m)
}

// goFiles returns the Go files of this module, by paths with slashes.
func goFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (name[0] == '.' || name[0] == '_' || name == "testdata" || name == "tools"):
			return fs.SkipDir
		case filepath.Ext(name) == ".go":
			files = append(files, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A test that hangs must show where, within minutes. Package watchdog does that, and
// leaktest starts it.
func TestEveryPackageWatchesItsTests(t *testing.T) {
	test := regexp.MustCompile(`(?m)^func Test[A-Z]\w*\(t \*testing\.T\)`)
	watched := regexp.MustCompile(`leaktest\.Main\(|leaktest\.Checked\{|(?s)^package (leaktest|watchdog)\n.*func TestMain\(`)
	tests, watches := make(map[string]bool), make(map[string]bool)
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		dir := path.Dir(name)
		tests[dir] = tests[dir] || test.Match(text)
		watches[dir] = watches[dir] || watched.Match(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, has := range tests {
		if has && !watches[dir] {
			t.Errorf("%s: func TestMain(m *testing.M) { leaktest.Main(m) } is missing", dir)
		}
	}
	if len(tests) < 40 {
		t.Errorf("found tests in %d packages only", len(tests))
	}
}
