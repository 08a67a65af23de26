// Package repository_test checks README.md, CONTRIBUTING.md and docs/. It runs, compiles or
// parses every block in them, unless a marker gives a reason not to (see reasons).
package repository_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// block is a fenced block of a page.
type block struct {
	page     string
	line     int    // of the fence
	language string // the word after the opening fence
	marker   string // the HTML comment on the line before the fence, or ""
	text     string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// reasons are the reasons for not running a block of commands. The marker
// <!-- not run: REASON --> is on the line before the block. Other checks still apply: the
// verbs, flags and make targets must exist.
var reasons = []string{"needs root", "needs a cluster", "takes minutes", "needs the network", "runs until interrupted"}

const (
	notRun = "not run: "
	runBy  = "run by " // a test function of this package
	folder = "internal/testing/repository"
)

// languages are the languages of blocks, and the test for each.
var languages = map[string]string{
	"console": "the commands are run, and print what is shown",
	"sh":      "the commands are run, and succeed",
	"go":      "is compiled",
	"hcl":     "is read as the configuration of host tools",
	"ini":     "the commands of a systemd unit exist",
	"cron":    "the commands of a crontab exist",
	"text":    "a picture: not checked",
}

func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("docs/*.md")
	if err != nil || len(found) == 0 {
		t.Fatalf("no pages in docs: %v", err)
	}
	return append([]string{"README.md", "CONTRIBUTING.md"}, found...)
}

// blocks returns the blocks of a page, in order.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found, err := parse(page, string(content))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func parse(page, content string) ([]block, error) {
	var found []block
	open, before := false, ""
	for i, line := range strings.Split(content, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && !open:
			marker, _ := strings.CutPrefix(before, "<!-- ")
			marker, isMarker := strings.CutSuffix(marker, " -->")
			if !isMarker {
				marker = ""
			}
			found = append(found, block{page: page, line: i + 1, language: fence, marker: marker})
			open = true
		case isFence:
			open = false
		case open:
			found[len(found)-1].text += line + "\n"
		case strings.HasPrefix(before, "<!-- "+notRun) || strings.HasPrefix(before, "<!-- "+runBy):
			return nil, fmt.Errorf("%s:%d: %s precedes no block", page, i, before)
		}
		before = line
	}
	if open {
		return nil, fmt.Errorf("%s: the last block has no end", page)
	}
	return found, nil
}

// unmarked returns the blocks of a language that a test must run.
func unmarked(t *testing.T, page, language string) []block {
	t.Helper()
	return slices.DeleteFunc(blocks(t, page), func(b block) bool { return b.language != language || b.marker != "" })
}

func TestEveryBlockOfTheDocsIsRunOrSaysWhyNot(t *testing.T) {
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if _, ok := languages[b.language]; !ok {
				t.Errorf("%v: no test handles blocks of %q", b, b.language)
			}
			reason, isNotRun := strings.CutPrefix(b.marker, notRun)
			test, isRunBy := strings.CutPrefix(b.marker, runBy)
			switch {
			case isNotRun && !slices.Contains(reasons, reason):
				t.Errorf("%v: %q is not a reason; use one of %q", b, reason, reasons)
			case isRunBy && !declares(t, folder, test):
				t.Errorf("%v: there is no test %s", b, test)
			case b.marker != "" && !isNotRun && !isRunBy:
				t.Errorf("%v: %q before a block is not a marker", b, b.marker)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

func TestLinksOfTheDocsLeadSomewhere(t *testing.T) {
	for _, page := range append(pages(t), "CHANGELOG.md", "SECURITY.md", "plugin/proto/PROTOCOL.md", "testdata/results/README.md", "examples/python/README.md", "examples/kubernetes/README.md", "examples/monitoring/README.md") {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(content), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			leads, err := os.Stat(file)
			if err != nil {
				t.Errorf("%s: %s leads nowhere", page, found[1])
				continue
			}
			if anchor != "" && !leads.IsDir() && !hasHeading(t, file, anchor) {
				t.Errorf("%s: %s has no heading %q", page, file, anchor)
			}
		}
	}
}

// hasHeading reports whether a page has a heading whose anchor on GitHub is this.
func hasHeading(t *testing.T, page, anchor string) bool {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heading.FindAllStringSubmatch(string(content), -1) {
		slug := strings.ReplaceAll(strings.ToLower(h[1]), " ", "-")
		if regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(slug, "") == anchor {
			return true
		}
	}
	return false
}

func TestMistakesInBlocksAreFound(t *testing.T) {
	for name, page := range map[string]string{
		"a block without an end":    "```sh\nls\n",
		"a marker before no block":  "<!-- not run: needs root -->\n\n```sh\nls\n```\n",
		"a marker before some text": "<!-- run by TestX -->\ntext\n",
	} {
		if found, err := parse("page.md", page); err == nil {
			t.Errorf("%s: %v", name, found)
		}
	}
	found, err := parse("page.md", "text\n<!-- not run: needs root -->\n```sh\na\nb\n```\n```go\n```\n")
	if err != nil || len(found) != 2 || found[0] != (block{"page.md", 3, "sh", "not run: needs root", "a\nb\n"}) || found[1].marker != "" {
		t.Errorf("%+v, %v", found, err)
	}
}

// docs/tool.md lists each event that the tool writes, and no other.
func TestEventsOfTheToolAreListed(t *testing.T) {
	page, err := os.ReadFile("docs/tool.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Events\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(row[1], -1) {
			listed = append(listed, name[1])
		}
	}
	var source strings.Builder
	for _, dir := range []string{"cmd/zkrecipes/internal/run", "cmd/zkrecipes/internal/verb"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if content, err := os.ReadFile(file); err != nil {
				t.Fatal(err)
			} else if !strings.HasSuffix(file, "_test.go") {
				source.Write(content)
			}
		}
	}
	for _, name := range listed[1:] { // the first is the column's
		if !strings.Contains(source.String(), `"`+name+`"`) {
			t.Errorf("the tool writes no event %s", name)
		}
	}
	for _, name := range regexp.MustCompile(`\bEvent: +"([a-z-]+)"|\breport\("([a-z]+)"|\bwhat, text :?= "([a-z]+)"|\bwhy, text = "([a-z]+)"`).FindAllStringSubmatch(source.String(), -1) {
		if name := strings.Join(name[1:], ""); !slices.Contains(listed, name) {
			t.Errorf("the page does not list the event %s", name)
		}
	}
}
