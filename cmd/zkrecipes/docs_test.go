package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTableOfTheDocs: docs/tool.md has a table with every verb, and no other. A
// cell names a verb as `queue put PATH`, and others of the family by their second
// word. The tests of the module's root run the commands of that page.
func TestTableOfTheDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tool.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n| verb |")
	if !found {
		t.Fatal("the page has no table of verbs")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	verbs := (&tool{}).verbs()
	var families []string
	for verb := range verbs {
		if first, _, two := strings.Cut(verb, " "); two {
			families = append(families, first)
		}
	}
	var shown []string
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		family := ""
		for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(cell, -1) {
			words := strings.Fields(strings.Trim(code, "`"))
			switch {
			case family != "":
				shown = append(shown, family+" "+words[0])
			case slices.Contains(families, words[0]):
				family = words[0]
				shown = append(shown, family+" "+words[1])
			default:
				shown = append(shown, words[0])
			}
		}
	}
	for verb := range verbs {
		if !slices.Contains(families, verb) && !slices.Contains(shown, verb) {
			t.Errorf("the table has no %q", verb)
		}
	}
	for _, verb := range shown {
		if _, ok := verbs[verb]; !ok {
			t.Errorf("there is no verb %q, which the table shows", verb)
		}
	}
}
