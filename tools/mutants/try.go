package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/tools/mutants/planted"
)

// atOnce is the number of tests that run at the same time, each in its own process.
const atOnce = 2

// test is one test function.
type test struct {
	dir, binary string
	name        string        // a regular expression, as go test -run takes it
	args        []string      // of the test itself
	takes       time.Duration // without a mistake
	reaches     map[int]bool
}

// try plants mistakes and runs the tests that reach them.
func try(t target, mutants []mutant, known map[string]string, end time.Time) (s score, err error) {
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(work)
	binaries, mutants, err := build(t, mutants, work)
	if err != nil {
		return s, err
	}
	tests, err := baseline(t, binaries, work)
	if err != nil {
		return s, err
	}
	var mu sync.Mutex
	forEach(mutants, func(m mutant) {
		by, reached, tried := hunt(m, tests, end)
		mu.Lock()
		defer mu.Unlock()
		switch reason := known[m.id()]; {
		case by != "":
			s.noticed++
			fmt.Printf("noticed by %s: %s\n", by, m.id())
			if reason != "" {
				fmt.Printf("REMOVE IT FROM %s: it is noticed\n", list)
			}
		case !tried:
			s.notTried++
		case strings.HasPrefix(reason, "equivalent"):
			s.equivalent++
		default:
			s.survived++
			fmt.Printf("SURVIVED %d tests (line %d):\n%s\n    %s\n", reached, m.line, m.id(), reason)
		}
	})
	return s, nil
}

// build compiles the tests with all mistakes in them. It leaves out mistakes that do not
// compile, such as the omission of the only use of a variable.
func build(t target, mutants []mutant, work string) (binaries map[string]string, left []mutant, err error) {
	patterns := t.packages
	if t.contract != "" {
		patterns += " " + contractTests + " " + simulationTests
	}
	dirs, err := folders(patterns)
	if err != nil {
		return nil, nil, err
	}
	for {
		overlay, err := write(mutants, work)
		if err != nil {
			return nil, nil, err
		}
		broken, err := compile(overlay, t)
		if err != nil {
			return nil, nil, err
		}
		if len(broken) == 0 {
			binaries = make(map[string]string)
			for i, dir := range dirs {
				binary := filepath.Join(work, fmt.Sprintf("%d.test", i))
				if out, err := exec.Command("go", "test", "-vet=off", "-overlay", overlay, "-c", "-o", binary, "./"+dir).CombinedOutput(); err != nil {
					return nil, nil, fmt.Errorf("compile the tests of %s: %w\n%s", dir, err, out)
				}
				if _, err := os.Stat(binary); err == nil { // a package without tests has no binary
					binaries[dir] = binary
				}
			}
			return binaries, mutants, nil
		}
		before := len(mutants)
		mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return broken[copyOf(m.file)+":"+strconv.Itoa(m.line)] })
		if len(mutants) == before {
			return nil, nil, fmt.Errorf("does not compile at %v, where no mistake is planted", broken)
		}
	}
}

// switches is the package that the files with mistakes import, to switch the mistakes on. It
// exists only in the overlay: a copy of package planted, which is in another module. Vet cannot
// read it.
const switches = "internal/testing/planted"

//go:embed planted/planted.go
var planting []byte

// write writes the files with mistakes, and the overlay that names them.
func write(mutants []mutant, work string) (string, error) {
	byFile := make(map[string][]mutant)
	for _, m := range mutants {
		byFile[m.file] = append(byFile[m.file], m)
	}
	replace := make(map[string]string)
	for file, here := range byFile {
		text, err := plant(file, here)
		if err != nil {
			return "", err
		}
		copied := filepath.Join(work, copyOf(file))
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			return "", err
		}
		full, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[full] = copied
	}
	copied, err := filepath.Abs(filepath.Join(filepath.FromSlash(switches), "planted.go"))
	if err != nil {
		return "", err
	}
	replace[copied] = filepath.Join(work, "planted.go")
	if err := os.WriteFile(replace[copied], planting, 0o600); err != nil {
		return "", err
	}
	overlay := filepath.Join(work, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// copyOf returns the name of the copy of a file that has mistakes in it.
func copyOf(file string) string { return strings.ReplaceAll(file, "/", "_") }

// position matches the position of a compiler error.
var position = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)

// compile compiles the packages and returns the lines with compiler errors.
func compile(overlay string, t target) (broken map[string]bool, err error) {
	args := []string{"build", "-gcflags=-e", "-overlay", overlay}
	dirs, err := folders(t.packages)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	broken = make(map[string]bool)
	for _, found := range position.FindAllSubmatch(out, -1) {
		file := filepath.ToSlash(filepath.Clean(string(found[1])))
		if filepath.IsAbs(file) { // the compiler names either the copy or the file
			file = filepath.Base(file)
		}
		broken[copyOf(file)+":"+string(found[2])] = true
	}
	if err != nil && len(broken) == 0 {
		return nil, fmt.Errorf("compile: %w\n%s", err, out)
	}
	return broken, nil
}

// noMistake is the environment of a test without a mistake.
const noMistake = planted.ActiveEnv + "="

// groupStarted matches a line of go test -v about a group of contract tests.
var groupStarted = regexp.MustCompile(`(?m)^=== RUN +\S+/contract/(\S+)$`)

// baseline runs each test alone, without a mistake. A test that fails notices none.
func baseline(t target, binaries map[string]string, work string) (tests []*test, err error) {
	add := func(dir, name string, args ...string) {
		tests = append(tests, &test{dir: dir, binary: binaries[dir], name: name, args: args, reaches: make(map[int]bool)})
	}
	if t.contract != "" {
		add(simulationTests, "^TestSimulation$", "-seeds", simulatedSeeds)
		contract := fmt.Sprintf("^TestContract$/^%s$/^embedded$/^contract$", t.contract)
		groups := &test{dir: contractTests, binary: binaries[contractTests], name: contract + "/./^$", args: []string{"-test.v"}} // no test below a group
		listed, _ := groups.run(10*time.Minute, noMistake)
		for _, group := range groupStarted.FindAllSubmatch(listed, -1) {
			add(contractTests, fmt.Sprintf("%s/^%s$", contract, group[1]))
		}
		if len(tests) == 1 {
			return nil, fmt.Errorf("the contract tests have no groups:\n%s", listed)
		}
	}
	for dir, binary := range binaries {
		if dir == contractTests || dir == simulationTests {
			continue
		}
		cmd := exec.Command(binary, "-test.list", "^Test")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list the tests of %s: %w", dir, err)
		}
		for _, name := range strings.Fields(string(out)) {
			add(dir, "^"+name+"$")
		}
	}
	forEach(tests, func(t *test) {
		file := filepath.Join(work, "reached-"+filepath.Base(t.binary)+"-"+strings.ReplaceAll(t.name, "/", "-"))
		began := time.Now()
		out, failed := t.run(10*time.Minute, planted.ReachedEnv+"="+file)
		if failed { // perhaps because the machine is busy
			began = time.Now()
			out, failed = t.run(10*time.Minute, planted.ReachedEnv+"="+file)
		}
		t.takes = time.Since(began)
		reached, _ := os.ReadFile(file) // there is no file if the test reaches none
		for _, number := range bytes.Fields(reached) {
			n, _ := strconv.Atoi(string(number))
			t.reaches[n] = true
		}
		if failed {
			t.reaches = nil
			fmt.Printf("LEFT OUT %s of %s, which fails without a mistake:\n%s\n", t.name, t.dir, out)
		}
	})
	slices.SortFunc(tests, func(a, b *test) int { return int(a.takes - b.takes) })
	var sum time.Duration
	for _, t := range tests {
		sum += t.takes
	}
	fmt.Printf("%d tests take %v, one after the other\n", len(tests), sum.Round(time.Second))
	return tests, nil
}

// run runs the test. A test that takes longer than within has failed.
func (t *test) run(within time.Duration, env string) (output []byte, failed bool) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.binary, append([]string{"-test.short", "-test.failfast", "-test.run", t.name}, t.args...)...)
	cmd.Dir = t.dir
	cmd.WaitDelay = time.Second // a plugin that a mistake leaves behind keeps the output open
	// With this variable set, the contract tests would run on a real server.
	cmd.Env = append(os.Environ(), env, "ZKRECIPES_REQUIRE_ZOOKEEPER=")
	output, err := cmd.CombinedOutput()
	return output, err != nil
}

// hunt runs the tests that reach a mistake, the shortest first, until one fails that passes
// without the mistake. It returns the name of that test.
func hunt(m mutant, tests []*test, end time.Time) (by string, reached int, tried bool) {
	for _, t := range tests {
		if !t.reaches[m.number] {
			continue
		}
		if time.Now().After(end) {
			return "", reached, false
		}
		reached++
		within := 20*time.Second + 5*t.takes // a mistake may make a test wait forever
		if _, failed := t.run(within, fmt.Sprint(planted.ActiveEnv, "=", m.number)); !failed {
			continue
		}
		if _, failed := t.run(within, noMistake); !failed {
			return t.name, reached, true
		}
	}
	return "", reached, true
}

// forEach runs f for each element of list, atOnce at a time.
func forEach[T any](list []T, f func(T)) {
	next := make(chan T)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for e := range next {
				f(e)
			}
		})
	}
	for _, e := range list {
		next <- e
	}
	close(next)
	all.Wait()
}

func glob(pattern string) (dirs []string, err error) {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("no folder %s: %w", pattern, err)
	}
	for _, dir := range found {
		if files, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(files) > 0 {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}
