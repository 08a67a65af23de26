package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// mutant is a file with one mistake.
type mutant struct {
	id   string // file, function, kind and text; it does not change when lines move
	file string // relative to the module
	line int
	text string // of the whole file
}

// findAll returns the mutants of packages, in the order of the source. It reads only files that
// belong to this system.
func findAll(packages []string) (all []mutant, err error) {
	files := `{{range .GoFiles}}{{slice $.ImportPath (len $.Module.Path)}}/{{.}}{{"\n"}}{{end}}`
	cmd := exec.Command("go", append([]string{"list", "-f", files}, packages...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for _, file := range strings.Fields(string(out)) {
		found, err := find(strings.TrimPrefix(file, "/"))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// finder finds the mutants of one file.
type finder struct {
	file     string
	source   string
	set      *token.FileSet
	function string
	ids      map[string]int
	found    []mutant
}

func find(file string) ([]mutant, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f := &finder{file: file, source: string(source), set: token.NewFileSet(), ids: make(map[string]int)}
	parsed, err := parser.ParseFile(f.set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range parsed.Decls {
		if function, ok := d.(*ast.FuncDecl); ok && function.Body != nil {
			f.function = function.Name.Name
			if function.Recv != nil {
				f.function = f.textOf(function.Recv.List[0].Type) + "." + f.function
			}
			ast.Inspect(function.Body, f.visit)
		}
	}
	return f.found, nil
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.BinaryExpr:
		f.operand(n.Op, n.X)
		f.operand(n.Op, n.Y)
	case *ast.CompositeLit:
		f.elements(n)
	}
	return true
}

// kept matches statements whose omission says nothing about the tests: no test reads a log or
// reaches a panic. A missing lock is for the race detector, and a missing unlock blocks every
// test. The deferred calls end early what ends by itself.
var kept = regexp.MustCompile(`\blog\.|[lL]ogger\.|\bLog\(\)\.|^panic\(|[lL]ock\(\)$|^defer (cancel\(\)|\S+\.Stop\(\))$`)

// statements drops each statement that can be left out. What it uses stays in use.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.ExprStmt, *ast.DeferStmt, *ast.IncDecStmt, *ast.GoStmt, *ast.SendStmt:
		default:
			continue
		}
		if text := f.textOf(s); !kept.MatchString(text) {
			f.add("drop", s, s.Pos(), s.End(), "if false { "+text+" }")
		}
	}
}

// operand ignores an operand of && or ||.
func (f *finder) operand(op token.Token, e ast.Expr) {
	switch op {
	case token.LAND:
		f.add("ignore (and)", e, e.Pos(), e.End(), "(true || ("+f.textOf(e)+"))")
	case token.LOR:
		f.add("ignore (or)", e, e.Pos(), e.End(), "(false && ("+f.textOf(e)+"))")
	}
}

// elements leaves out each element of a slice, such as the check in a transaction.
func (f *finder) elements(l *ast.CompositeLit) {
	if a, ok := l.Type.(*ast.ArrayType); !ok || a.Len != nil {
		return
	}
	for i, element := range l.Elts {
		start, end := l.Lbrace+1, l.Rbrace
		if _, keyed := element.(*ast.KeyValueExpr); keyed {
			return
		} else if i > 0 {
			start, end = l.Elts[i-1].End(), element.End()
		} else if len(l.Elts) > 1 {
			end = l.Elts[1].Pos()
		}
		f.add("leave out", element, start, end, "")
	}
}

// add adds a mutant that is named after a node and has text from start to end.
func (f *finder) add(kind string, named ast.Node, start, end token.Pos, text string) {
	id := fmt.Sprintf("%s: %s: %s `%s`", f.file, f.function, kind, shorten(f.textOf(named)))
	if f.ids[id]++; f.ids[id] > 1 {
		id = fmt.Sprintf("%s (%d)", id, f.ids[id])
	}
	text = f.source[:f.offset(start)] + text + f.source[f.offset(end):]
	f.found = append(f.found, mutant{id, f.file, f.set.Position(named.Pos()).Line, text})
}

func (f *finder) textOf(n ast.Node) string { return f.source[f.offset(n.Pos()):f.offset(n.End())] }

func (f *finder) offset(p token.Pos) int { return f.set.Position(p).Offset }

// shorten returns the text in one line of at most 80 characters and dots.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 80 {
		text = string(runes[:80]) + "..."
	}
	return text
}
