package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestMistakes(t *testing.T) {
	for body, want := range map[string][]string{
		"return a && f()":                   {"ignore (and) `a`: return (true || (a)) && f()", "ignore (and) `f()`: return a && (true || (f()))"},
		"return a || f()":                   {"ignore (or) `a`: return (false && (a)) || f()", "ignore (or) `f()`: return a || (false && (f()))"},
		"n++; n++":                          {"drop `n++`: if false { n++ }; n++", "drop `n++` (2): n++; if false { n++ }"},
		"switch { case a: ch <- n }":        {"drop `ch <- n`: switch { case a: if false { ch <- n } }"},
		"select { case <-ch: go f() }":      {"drop `go f()`: select { case <-ch: if false { go f() } }"},
		"n, m := 1, 2; n = m":               {"drop `n = m`: n, m := 1, 2; if false { n = m }"},
		"defer close(ch); panic(n)":         {"drop `defer close(ch)`: if false { defer close(ch) }; panic(n)"},
		"return []int{n, m}":                {"leave out `n`: return []int{m}", "leave out `m`: return []int{n}"},
		"return []int{\nn,\n}":              {"leave out `n`: return []int{}"},
		"return []int{1: n}, [2]int{n}":     nil,
		"mu.Lock(); defer t.mu.RUnlock()":   nil,
		"defer cancel(); defer t.x.Stop()":  nil,
		"s.logger.Info(n); s.Log().Warn(n)": nil,
	} {
		file := filepath.Join(t.TempDir(), "p.go")
		before, after := "package p\n\nfunc (t T) f() { ", " }\n"
		must.Do(t, os.WriteFile(file, []byte(before+body+after), 0o600))
		var got []string
		for _, m := range must.Get(find(file))(t) {
			got = append(got, strings.TrimPrefix(m.id, file+": T.f: ")+": "+strings.TrimSuffix(m.text[len(before):], after))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", body, got, want)
		}
	}
}

// The module has a mistake for each result. Package other tests it too, and package broken fails
// without a mistake.
func TestResults(t *testing.T) {
	t.Chdir(t.TempDir())
	for file, text := range map[string]string{
		"go.mod":              "module m\n\ngo 1.26\n",
		"m.go":                "package m\n\nvar X, Y, Z int\n\nfunc F() { n := 1; X = len([]int{n}); Y = 1; Z = 1; for i := 0; i < 1; { i++ } }\n",
		"m_test.go":           "package m\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { if F(); X != 1 { t.Error(X) } }\n",
		"other/other_test.go": "package other\n\nimport (\"m\"; \"testing\")\n\nfunc TestY(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { if m.F(); m.Y != 1 { t.Error(m.Y) } }) }\n",
		"broken/b_test.go":    "package broken\n\nimport \"testing\"\n\nfunc TestZ(t *testing.T) { t.Error() }\n",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	var got []string
	for _, m := range must.Get(findAll([]string{"./..."}))(t) {
		if strings.Contains(m.id, "i++") {
			t.Setenv("GOFLAGS", "-timeout=1s") // the loop never ends
		}
		r, by, err := try(m, part{[]string{"./other"}, [][]string{{"./broken"}}})
		got = append(got, fmt.Sprintf("%s: %s%s", m.id, r, by))
		must.Report(t, err)
	}
	if want := []string{
		"m.go: F: drop `X = len([]int{n})`: noticed by TestX of m",
		"m.go: F: drop `Y = 1`: noticed by TestY/sub of m/other",
		"m.go: F: drop `Z = 1`: SURVIVED",
		"m.go: F: leave out `n`: did not compile",
		"m.go: F: drop `i++`: timed out in m",
	}; !slices.Equal(got, want) {
		t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestASeedAlwaysChoosesTheSameMistakes(t *testing.T) {
	chosen := func(n int, seed uint64) []mutant {
		all := []mutant{{id: "a"}, {id: "b1"}, {id: "b2"}, {id: "b3"}, {id: "b4"}, {id: "b5"}, {id: "b6"}}
		return choose(all, n, seed, regexp.MustCompile("b"), []string{"b2"})
	}
	a, b, c, all := chosen(4, 1), chosen(4, 1), chosen(4, 2), chosen(1000, 1)
	if len(a) != 4 || !slices.Equal(a, b) || slices.Equal(a, c) || len(all) != 5 {
		t.Error(a, b, c, all)
	}
}

func TestTheSourceHasTheMistakesOfTheList(t *testing.T) {
	t.Chdir(filepath.Join("..", root))
	for _, id := range must.Get(readList(list))(t) {
		file, _, _ := strings.Cut(id, ": ")
		mutants, err := find(file)
		if err != nil || !slices.ContainsFunc(mutants, func(m mutant) bool { return m.id == id }) {
			t.Errorf("the source no longer has this mistake: %s %v", id, err)
		}
	}
}

func TestAMistakeWithoutAReasonIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list")
	for text, good := range map[string]bool{"# nothing\n": true, "a.go: f\n    equivalent": true, "a.go: f\na.go: g\n    equivalent": false} {
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := readList(file); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
