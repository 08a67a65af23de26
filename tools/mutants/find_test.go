package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

const source = `package p

import "fmt"

const no = false

func (t *T) f(a, b int) bool {
	if a < b && t.ready {
		t.n++
	}
	defer t.close()
	panic(fmt.Sprint([]int{a, b}))
}

func g(a int) (ok bool) {
	switch {
	case a == 1:
		ok = true
	case a > h():
		t.logger.Debug("no mistake")
	}
	for i := 0; i < a; i++ {
	}
	return ok
}

func (t *T) h(a int) {
	if a < 0 && t.ready {
		t.Log().Error("no mistake", "a", a)
	}
	ctx, cancel := context.WithTimeout(t.ctx, time.Second)
	defer cancel()
	wait := time.NewTimer(time.Second)
	defer wait.Stop()
	t.wait(ctx, wait)
}

func (t *T) j(s fmt.Stringer) {
	t.mu.Lock()
	t.i()
	t.k(one(two()))
	t.n = 1
	t.mu.Unlock()
	t.next().i()
	s.String()
}

func (t *T) k(a int) {}

func (t *T) iLocked() {}

func one(a int) int { return a }

func other(b int) int { return b }

func two() (n int) { return n }

func (t *T) i() {
	ctx, cancel := context.WithTimeout(t.ctx, time.Second)
	defer cancel()
	go t.wait(ctx)
	t.spawn(t.close)
}
`

func written(t *testing.T) (file string, mutants []mutant) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "p.go")
	must.Do(t, os.WriteFile(file, []byte(source), 0o600))
	mutants = must.Get(find(dir))(t)
	for i := range mutants {
		mutants[i].number = i
	}
	return file, mutants
}

// All mistakes are planted at once, nested in each other, and no line moves.
func TestMistakesArePlantedTogether(t *testing.T) {
	file, mutants := written(t)
	text := must.Get(plant(file, mutants))(t)
	if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.AllErrors); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	lines := strings.Split(string(text), "\n")
	if before := strings.Split(source, "\n"); len(lines) != len(before) {
		t.Errorf("%d lines; before there were %d", len(lines), len(before))
	}
	for _, want := range []string{
		"if (planted.On(1) != ((planted.On(2) || ((a < b) != (planted.On(4) && a == b))) && (planted.On(3) || t.ready))) {",
		"if !planted.On(5) { t.n++ }",
		"planted.Without(6, 0, planted.Without(7, 1, []int{a, b}))",
		"if !planted.On(10) { ok = (!planted.On(11) && true) }",
		"if !planted.On(15) { if !planted.On(21) { t.i() } }",
		"{ planted.Or(23, t.k, t.h)(planted.Or(24, one, other)(two())) }; if planted.On(21) { t.i() }",
	} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}

func TestSurvivorsHaveReasons(t *testing.T) {
	known := must.Get(readList(filepath.Join("..", root, list)))(t)
	for id := range known {
		file, _, _ := strings.Cut(id, ": ")
		mutants, err := newFinder(filepath.Join("..", root, file))
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		found := slices.ContainsFunc(mutants.find(), func(m mutant) bool { return file+": "+m.name == id })
		if !found {
			t.Errorf("the source no longer has this mistake: %s", id)
		}
	}
}

func TestAMistakeWithoutAReasonIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list")
	for text, good := range map[string]bool{
		"# nothing\n":             true,
		"a.go: f\n    equivalent": true,
		"a.go: f\n":               false,
		"    a reason\n":          false,
	} {
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := readList(file); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }
