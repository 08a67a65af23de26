package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestDocsListEveryVerb: the table in docs/tool.md contains exactly the verbs of the tool. A
// cell names one verb in full (`queue put PATH`), and others with the same prefix by their
// second word. Tests at the root of the module run the commands of that page.
func TestDocsListEveryVerb(t *testing.T) {
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "tool.md")))(t)
	_, table, found := strings.Cut(string(page), "\n| verb |")
	if !found {
		t.Fatal("the page has no table of verbs")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	verbs := everyVerb()
	var shown []string
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		prefix := ""
		for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(cell, -1) {
			words := strings.Fields(strings.Trim(code, "`"))
			switch {
			case prefix != "":
				shown = append(shown, prefix+" "+words[0])
			case prefixes[words[0]] != "":
				prefix = words[0]
				shown = append(shown, prefix+" "+words[1])
			default:
				shown = append(shown, words[0])
			}
		}
	}
	for verb := range verbs {
		if !slices.Contains(shown, verb) {
			t.Errorf("the table has no %q", verb)
		}
	}
	for _, verb := range shown {
		if _, ok := verbs[verb]; !ok {
			t.Errorf("there is no verb %q, which the table shows", verb)
		}
	}
}

// TestDocsCompareOnlyTestedFeatures: in the comparison of docs/tool.md, each feature of
// zkrecipes is a verb with flags, or a variable, and a script uses it.
func TestDocsCompareOnlyTestedFeatures(t *testing.T) {
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "tool.md")))(t)
	_, table, found := strings.Cut(string(page), "\n| what | flock | consul lock | etcdctl lock | zkrecipes |\n|---|---|---|---|---|\n")
	if !found {
		t.Fatal("the page has no comparison")
	}
	table, _, _ = strings.Cut(table+"\n", "\n\n")
	scripts := allScripts(t)
	verbs := everyVerb()
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 {
			t.Errorf("%d cells: %s", len(cells), line)
			continue
		}
		claims := regexp.MustCompile("`[^`]*`").FindAllString(cells[4], -1)
		if len(claims) == 0 && strings.TrimSpace(cells[4]) != "no" {
			t.Errorf("no verb, no flag: %s", line)
		}
		for _, claim := range claims {
			words := strings.Fields(strings.Trim(claim, "`"))
			if strings.HasPrefix(words[0], "ZKRECIPES_") {
				if !strings.Contains(scripts, "$"+words[0]) {
					t.Errorf("no script uses %s", claim)
				}
				continue
			}
			verb := verbs[words[0]]
			if verb == nil {
				t.Errorf("there is no verb %s", claim)
				continue
			}
			used := `(?m)zkrecipes ` + words[0] + ` .*`
			for _, name := range words[1:] {
				if verb.FlagSet().Lookup(strings.TrimPrefix(name, "-")) == nil {
					t.Errorf("there is no flag %s of %s", name, claim)
				}
				used += name + `\b.*`
			}
			if !regexp.MustCompile(used).MatchString(scripts) {
				t.Errorf("no script uses %s", claim)
			}
		}
	}
}

// allScripts returns the concatenated scripts of TestScripts.
func allScripts(t *testing.T) string {
	files, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	for _, file := range files {
		content := must.Get(os.ReadFile(file))(t)
		all.Write(content)
	}
	return all.String()
}
