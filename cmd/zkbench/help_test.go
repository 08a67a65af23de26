package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
)

// Whoever asks for help wants to know what a verb does and how it is called, then what
// it promises, and at the end every flag.
func TestHelpBeginsWithWhatIsWantedFirst(t *testing.T) {
	for _, v := range verbs() {
		_, help, _ := zkbench(t.Context(), new(fake.World).Open, v.name, "-h")
		usage, rest, _ := strings.Cut(help, "\n\n")
		if !strings.HasPrefix(usage, "Usage: zkbench "+v.name) || strings.Contains(usage, "\n") {
			t.Errorf("%s begins with %q", v.name, usage)
		}
		about, rest, _ := strings.Cut(rest, "\n\n")
		if n := len(regexp.MustCompile(`[.](\s|$)`).FindAllString(about, -1)); n != 2 {
			t.Errorf("%s says what it does in %d sentences; want 2: %q", v.name, n, about)
		}
		examples, rest, _ := strings.Cut(rest, "\n\nExit codes:")
		if !strings.HasPrefix(examples, "Examples:\n\n") || strings.Count(examples, "\tzkbench "+v.name) < 2 && v.name != "plan" {
			t.Errorf("%s has not two examples below what it does", v.name)
		}
		if v.name == "sweep" { // its exit codes are those of run
			rest = help
		}
		if i := strings.Index(rest, "\n\nFlags:\n\n"); i < 0 || !strings.HasPrefix(rest[i+10:], "  -") {
			t.Errorf("%s does not end with its flags", v.name)
		}
	}
}

// The README says as the help how long the first command takes.
func TestTheFirstCommandTakesAsLongAsTheReadmeSays(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`three ways to wait,? in[^.]* (\w+) seconds`)
	var times []string
	for _, text := range []string{help, string(readme)} {
		m := said.FindStringSubmatch(text)
		if m == nil {
			t.Fatal("no time is said")
		}
		times = append(times, m[1])
	}
	if times[0] != times[1] {
		t.Errorf("the help says %s seconds, the README %s", times[0], times[1])
	}
}
