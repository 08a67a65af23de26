package zkrecipes_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// room has the size and the limits of a folder in testdata/budget.txt. It includes the
// folders below it, except those that budget.txt lists themselves.
type room struct{ product, tests, files int }

// TestTheHouseKeepsItsBudget counts the lines of Go by room, without generated code. A
// commit that raises a limit says why. With -v the test prints the counts.
func TestTheHouseKeepsItsBudget(t *testing.T) {
	budget, order := readBudget(t)
	spent := map[string]*room{}
	for name := range budget {
		spent[name] = &room{}
	}
	for _, file := range goFiles(t) {
		text, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(parsed) {
			continue
		}
		name := path.Dir(file)
		for spent[name] == nil && name != "." {
			name = path.Dir(name)
		}
		here := spent[name]
		if here == nil {
			t.Errorf("%s belongs to no room of testdata/budget.txt", file)
			continue
		}
		here.files++
		if lines := bytes.Count(text, []byte("\n")); strings.HasSuffix(file, "_test.go") {
			here.tests += lines
		} else {
			here.product += lines
		}
	}
	var sum room
	for _, name := range order {
		is, may := spent[name], budget[name]
		t.Logf("%s %d %d %d", name, is.product, is.tests, is.files)
		sum.product, sum.tests, sum.files = sum.product+is.product, sum.tests+is.tests, sum.files+is.files
		if is.product > may.product || is.tests > may.tests || is.files > may.files {
			t.Errorf("%s has %d lines, %d of tests, %d files; its budget is %d, %d, %d: make room, or raise it and say why", name, is.product, is.tests, is.files, may.product, may.tests, may.files)
		}
		if is.files == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	t.Logf("%d lines, %d of tests, %d files", sum.product, sum.tests, sum.files)
}

func readBudget(t *testing.T) (budget map[string]room, order []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "budget.txt"))
	if err != nil {
		t.Fatal(err)
	}
	budget = map[string]room{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		var name string
		var r room
		if _, err := fmt.Sscan(line, &name, &r.product, &r.tests, &r.files); err != nil {
			t.Fatalf("testdata/budget.txt: %q: %v", line, err)
		}
		budget[name], order = r, append(order, name)
	}
	return budget, order
}
