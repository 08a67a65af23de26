package main

import (
	"cmp"
	"fmt"
	"go/ast"
	gobuild "go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one mistake.
type mutant struct {
	file   string // relative to the module
	line   int
	name   string // function, kind and text: it does not change when lines move
	number int    // in this run
	edits  func(number int) []edit
}

// id names a mutant in the list of survivors.
func (m mutant) id() string { return m.file + ": " + m.name }

// edit inserts text at an offset of a file.
type edit struct {
	offset int
	text   string
	closes bool // inserted at the end of the surrounded text, not at its beginning
	extent int  // length of the surrounded text: at one offset the longer opens first and closes last
	number int  // of its mutant: if two surround the same text, the smaller number is outside
}

// find returns all mutants of the package in dir, in the order of the source.
func find(dir string) (all []mutant, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if !built(file) {
			continue
		}
		f, err := newFinder(file)
		if err != nil {
			return nil, err
		}
		all = append(all, f.find()...)
	}
	return all, nil
}

// built reports whether a file belongs to its package on this system.
func built(file string) bool {
	ok, err := gobuild.Default.MatchFile(filepath.Split(file))
	return ok && err == nil && !strings.HasSuffix(file, "_test.go")
}

// finder finds the mutants of one file.
type finder struct {
	file   string
	source []byte
	set    *token.FileSet
	parsed *ast.File
	inside string // the function
	body   string // the text of the body
	names  map[string]int
	same   map[string]string // another function of the package with the same signature
	found  []mutant
}

func newFinder(file string) (*finder, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f := &finder{file: file, source: source, set: token.NewFileSet(), names: make(map[string]int)}
	f.parsed, err = parser.ParseFile(f.set, file, source, parser.SkipObjectResolution)
	if err == nil {
		f.same, err = sameSignatures(filepath.Dir(file))
	}
	return f, err
}

func (f *finder) find() []mutant {
	for _, d := range f.parsed.Decls {
		if function, ok := d.(*ast.FuncDecl); ok && function.Body != nil {
			f.inside = function.Name.Name
			if function.Recv != nil {
				f.inside = f.text(function.Recv.List[0].Type) + "." + f.inside
			}
			f.body = f.text(function.Body)
			ast.Inspect(function.Body, f.visit)
		}
	}
	return f.found
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.IfStmt:
		if f.onlySays(n) {
			return false
		}
		f.condition(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					f.condition(e)
				}
			}
		}
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.CallExpr:
		f.call(n)
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.CompositeLit:
		f.literal(n)
	case *ast.Ident:
		if n.Name == "true" {
			f.around("false for", n, "(!planted.On(%[1]d) && ", ")")
		} else if n.Name == "false" {
			f.around("true for", n, "(planted.On(%[1]d) || ", ")")
		}
	}
	return true
}

// condition plants a negation.
func (f *finder) condition(e ast.Expr) { f.around("negate", e, "(planted.On(%[1]d) != (", "))") }

// statements plants the omission of each statement that can be left out.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if f.says(s.X) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.DeferStmt:
			if f.endsByItself(s.Call) {
				continue
			}
		case *ast.IncDecStmt, *ast.GoStmt, *ast.SendStmt:
		default:
			continue
		}
		f.around("drop", s, "if !planted.On(%[1]d) { ", " }")
	}
	f.swaps(list)
}

// swaps plants the reverse order of neighbouring statements that both call something.
func (f *finder) swaps(list []ast.Stmt) {
	for i := range max(0, len(list)-1) {
		first, second := list[i], list[i+1]
		if define, ok := first.(*ast.AssignStmt); !f.operates(first) || !f.operates(second) || ok && define.Tok == token.DEFINE {
			continue
		}
		text := f.text(first)
		if strings.Contains(text, "\n") { // the copy would move the lines below
			continue
		}
		start, end, after := f.offset(first.Pos()), f.offset(first.End()), f.offset(second.End())
		f.note("swap", fmt.Sprintf("%s; %s", text, f.text(second)), first, func(number int) []edit {
			return []edit{
				{start, fill("if !planted.On(%[1]d) { ", number), false, end - start, number},
				{end, " }", true, end - start, number},
				{after, fill("; if planted.On(%[1]d) { "+escape(text)+" }", number), true, after - start, number},
			}
		})
	}
}

// operates reports whether a statement calls something, so that its order may matter. Lock
// and Unlock do not count: only the race detector notices their wrong order.
func (f *finder) operates(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.GoStmt, *ast.SendStmt:
	default:
		return false
	}
	text := f.text(s)
	if e, ok := s.(*ast.ExprStmt); ok && f.says(e.X) || strings.HasSuffix(text, "ock()") || strings.HasSuffix(text, ".Helper()") {
		return false
	}
	found := false
	ast.Inspect(s, func(n ast.Node) bool {
		_, call := n.(*ast.CallExpr)
		found = found || call
		return true
	})
	return found
}

// call plants the call of another function with the same signature. It leaves out the
// variant for callers that hold the lock, because only the race detector notices that.
func (f *finder) call(c *ast.CallExpr) {
	var before, name string
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		if calls(fun.X) { // the operand is evaluated twice
			return
		}
		before, name = f.text(fun.X)+".", "."+fun.Sel.Name
	}
	if other := strings.TrimPrefix(f.same[name], "."); other != "" && f.same[name] != name+"Locked" {
		f.around("call "+other+" for", c.Fun, "planted.Or(%[1]d, ", ", "+escape(before+other)+")")
	}
}

// says reports whether a call only writes to a log, or panics.
func (f *finder) says(e ast.Expr) bool {
	text := f.text(e)
	return strings.HasPrefix(text, "panic(") || strings.Contains(text, "log.") || strings.Contains(text, "logger.") ||
		strings.Contains(text, "Logger.") || strings.Contains(text, "Log().")
}

// onlySays reports whether a condition only decides whether to log. No test reads the log.
func (f *finder) onlySays(n *ast.IfStmt) bool {
	if n.Init != nil || n.Else != nil {
		return false
	}
	for _, s := range n.Body.List {
		e, ok := s.(*ast.ExprStmt)
		if !ok || !f.says(e.X) || strings.HasPrefix(f.text(e.X), "panic(") {
			return false
		}
	}
	return len(n.Body.List) > 0
}

// endsByItself reports whether a deferred call only ends early what would end by itself: a
// timer, or a context with a deadline. In the second case the function must start nothing
// that could still use the context.
func (f *finder) endsByItself(call *ast.CallExpr) bool {
	name, stops := strings.CutSuffix(f.text(call), ".Stop()")
	switch {
	case stops:
		return strings.Contains(f.body, name+" := time.NewTimer(")
	case f.text(call) != "cancel()", strings.Contains(f.body, "context.WithCancel("):
		return false
	}
	for _, starts := range []string{"go ", ".Go(", "spawn(", "Background(", "AfterFunc("} {
		if strings.Contains(f.body, starts) {
			return false
		}
	}
	return strings.Contains(f.body, "cancel := context.WithTimeout(") || strings.Contains(f.body, "cancel := context.WithDeadline(")
}

func (f *finder) binary(e *ast.BinaryExpr) {
	switch e.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		if !calls(e) { // the operands are evaluated twice
			f.around("move the boundary of", e, "((", fmt.Sprintf(") != (planted.On(%%[1]d) && %s == %s))", escape(f.text(e.X)), escape(f.text(e.Y))))
		}
	case token.LAND:
		f.around("ignore (and)", e.X, "(planted.On(%[1]d) || ", ")")
		f.around("ignore (and)", e.Y, "(planted.On(%[1]d) || ", ")")
	case token.LOR:
		f.around("ignore (or)", e.X, "(!planted.On(%[1]d) && (", "))")
		f.around("ignore (or)", e.Y, "(!planted.On(%[1]d) && (", "))")
	}
}

// literal plants the omission of each element of a slice, such as the check in a
// transaction.
func (f *finder) literal(l *ast.CompositeLit) {
	if a, ok := l.Type.(*ast.ArrayType); !ok || a.Len != nil {
		return
	}
	for i, element := range l.Elts {
		if _, keyed := element.(*ast.KeyValueExpr); keyed {
			return
		}
		f.plant("leave out", element, []ast.Node{l}, fmt.Sprintf("planted.Without(%%[1]d, %d, ", i), ")")
	}
}

func (f *finder) around(kind string, n ast.Node, before, after string) {
	f.plant(kind, n, []ast.Node{n}, before, after)
}

// plant adds a mutant that is named after one node and surrounds another.
func (f *finder) plant(kind string, named ast.Node, surrounded []ast.Node, before, after string) {
	start, end := f.offset(surrounded[0].Pos()), f.offset(surrounded[0].End())
	f.note(kind, f.text(named), named, func(number int) []edit {
		return []edit{
			{start, fill(before, number), false, end - start, number},
			{end, fill(after, number), true, end - start, number},
		}
	})
}

// note adds a mutant at a node.
func (f *finder) note(kind, text string, at ast.Node, edits func(number int) []edit) {
	name := fmt.Sprintf("%s: %s `%s`", f.inside, kind, shorten(text))
	if f.names[name]++; f.names[name] > 1 {
		name = fmt.Sprintf("%s (%d)", name, f.names[name])
	}
	f.found = append(f.found, mutant{file: f.file, line: f.set.Position(at.Pos()).Line, name: name, edits: edits})
}

func fill(text string, number int) string {
	if !strings.Contains(text, "%[1]d") {
		return text
	}
	return fmt.Sprintf(text, number)
}

func escape(text string) string { return strings.ReplaceAll(text, "%", "%%") }

func (f *finder) offset(p token.Pos) int { return f.set.Position(p).Offset }

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.offset(n.Pos()):f.offset(n.End())])
}

// shorten returns the text in one line of at most 80 characters and dots.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 80 {
		text = string(runes[:80]) + "..."
	}
	return text
}

// calls reports whether an expression calls anything but len.
func calls(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			name, _ := c.Fun.(*ast.Ident)
			found = found || name == nil || name.Name != "len"
		}
		return true
	})
	return found
}

// plant returns the text of a file with the mutants in it. No line moves.
func plant(file string, mutants []mutant) ([]byte, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.PackageClauseOnly)
	if err != nil {
		return nil, err
	}
	edits := []edit{{offset: int(parsed.Name.End()) - 1, text: "; import \"" + module + "/" + switches + "\""}}
	for _, m := range mutants {
		edits = append(edits, m.edits(m.number)...)
	}
	slices.SortStableFunc(edits, func(a, b edit) int {
		switch {
		case a.offset != b.offset:
			return a.offset - b.offset
		case a.closes != b.closes && a.closes:
			return -1
		case a.closes != b.closes:
			return 1
		case a.closes:
			return cmp.Or(a.extent-b.extent, b.number-a.number)
		}
		return cmp.Or(b.extent-a.extent, a.number-b.number)
	})
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, source[at:e.offset]...), e.text...)
		at = e.offset
	}
	return append(out, source[at:]...), nil
}
