package zkrecipes_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// pkg.go.dev shows documentation only if it detects the licence. It detects an exact copy
// of the standard text.
func TestTheLicenceIsTheStandardText(t *testing.T) {
	text, err := os.ReadFile("LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	// The text of the Apache Software Foundation, and of Debian's base-files.
	const standard = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
	if got := fmt.Sprintf("%x", sha256.Sum256(text)); got != standard {
		t.Errorf("LICENSE has the checksum %s, the standard text has %s", got, standard)
	}
}

// CONTRIBUTING.md lists the files that a new recipe touches, by the example of Slots.
func TestTheFilesOfARecipeAreListed(t *testing.T) {
	guide, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`Slots|"slots"`)
	for _, file := range goFiles(t) {
		if path.Dir(file) == "." || strings.HasSuffix(file, ".pb.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if named, listed := names.Match(text), strings.Contains(string(guide), "`"+file+"`"); named != listed {
			t.Errorf("%s names the recipe Slots: %v; CONTRIBUTING.md lists it: %v", file, named, listed)
		}
	}
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
