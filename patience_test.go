package zkrecipes_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// impatient are the calls that bound a wait, with the index of the argument that is the
// duration.
var impatient = map[string]int{
	"context.WithTimeout": 1, "context.WithDeadline": 1, "time.After": 0, "time.NewTimer": 0, "time.AfterFunc": 0,
	"SetDeadline": 0, "SetReadDeadline": 0, "time.Now().Add": 0,
}

// excuses are the reasons why a wait may end after seconds. The comment after such a wait
// begins with one of them. A wait inside synctest.Test needs none.
var excuses = []string{
	"virtual",    // time, in a bubble that another function has made
	"subject: ",  // the end of the wait is what the test is about
	"clean-up: ", // nothing fails
	"tried again",
}

// If a test waits only a few seconds, it fails on a machine that is busy for longer. So tests
// bound their waits by watchdog.Patience.
func TestNoTestIsLessPatientThanTheWatchdog(t *testing.T) {
	found := 0
	files := slices.DeleteFunc(goFiles(t), func(file string) bool {
		return !strings.HasSuffix(file, "_test.go") && path.Dir(file) != "recipes/recipestest"
	})
	seconds := shortConstants(t, files)
	for _, file := range files {
		f := parsed(t, file)
		for _, w := range f.waits(seconds[path.Dir(file)]) {
			found++
			if comment := f.comments[w.line]; !slices.ContainsFunc(excuses, func(e string) bool { return strings.HasPrefix(comment, e) }) {
				t.Errorf("%s:%d: %s ends after seconds, and a busy machine may take longer. Use watchdog.Patience, or give the reason in a comment on the line: %q",
					file, w.line, w.text, excuses)
			}
		}
		for _, line := range f.hangs {
			t.Errorf("%s:%d: select {} ends a process that is built without cgo; use watchdog.Hang", file, line)
		}
	}
	if found < 10 {
		t.Errorf("found %d waits only", found)
	}
}

// testFile is a file of tests.
type testFile struct {
	set      *token.FileSet
	source   []byte
	file     *ast.File
	comments map[int]string // by line, without the slashes
	hangs    []int          // lines of select {}
}

func parsed(t *testing.T, file string) *testFile {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f := &testFile{set: token.NewFileSet(), source: source, comments: map[int]string{}}
	if f.file, err = parser.ParseFile(f.set, file, source, parser.ParseComments); err != nil {
		t.Fatal(err)
	}
	for _, group := range f.file.Comments {
		for _, c := range group.List {
			f.comments[f.line(c)] = strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
		}
	}
	return f
}

func (f *testFile) line(n ast.Node) int { return f.set.Position(n.Pos()).Line }

func (f *testFile) text(n ast.Node) string {
	return string(f.source[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])
}

// wait is a call that ends a wait after seconds.
type wait struct {
	line int
	text string
}

// waits returns the waits of a file, except those in bubbles. seconds has the names of the
// constants that last seconds.
func (f *testFile) waits(seconds map[string]bool) (found []wait) {
	ast.Inspect(f.file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectStmt); ok && len(s.Body.List) == 0 {
			f.hangs = append(f.hangs, f.line(s))
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := f.text(call.Fun)
		if slices.Contains([]string{"synctest.Test", "onVirtualTime", "zktest.OnVirtualTime"}, name) {
			return false
		}
		at, bounds := impatient[name]
		if selector, ok := call.Fun.(*ast.SelectorExpr); ok && !bounds {
			at, bounds = impatient[selector.Sel.Name]
		}
		if bounds && at < len(call.Args) && lastsSeconds(call.Args[at], seconds) {
			found = append(found, wait{f.line(call), f.text(call)})
		}
		return true
	})
	return found
}

// lastsSeconds reports whether a duration is written in seconds or minutes, or is one of the
// constants.
func lastsSeconds(duration ast.Expr, constants map[string]bool) (does bool) {
	if minus, ok := duration.(*ast.UnaryExpr); ok && minus.Op == token.SUB {
		return false
	}
	ast.Inspect(duration, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			does = does || of != nil && of.Name == "time" && (n.Sel.Name == "Second" || n.Sel.Name == "Minute")
			return of == nil
		case *ast.Ident:
			does = does || constants[n.Name]
		case *ast.CallExpr:
			return false // of another duration: found by itself
		}
		return true
	})
	return does
}

// shortConstants returns the names of constants that last seconds, by folder.
func shortConstants(t *testing.T, files []string) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, file := range files {
		here := all[path.Dir(file)]
		if here == nil {
			here = map[string]bool{}
			all[path.Dir(file)] = here
		}
		ast.Inspect(parsed(t, file).file, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); !ok || d.Tok != token.CONST {
				return true
			}
			ast.Inspect(n, func(n ast.Node) bool {
				if v, ok := n.(*ast.ValueSpec); ok {
					for i, name := range v.Names {
						if i < len(v.Values) && lastsSeconds(v.Values[i], nil) {
							here[name.Name] = true
						}
					}
				}
				return true
			})
			return false
		})
	}
	return all
}
