// Command mutants plants mistakes in the source, one at a time, and lists those that no fast
// test notices:
//
//	go -C tools run ./mutants -sample 40
//
// It negates conditions or ignores a part of them, drops statements and moves
// boundaries by one. It leaves elements out of a list (the check in a transaction), and
// swaps true and false (the watch of a read). It exchanges neighbouring statements that
// both call something, and calls another function of the package with the same signature.
//
// It compiles all mistakes of a run into the tests once, each behind a switch. Then it runs
// each test alone to record which mistakes the test reaches. So a mistake needs no
// compilation, and only the tests that reach it run against it, the shortest first, until
// one fails. That test must then pass without the mistake, or its failure may only show that
// the machine is busy.
//
// testdata/mutants.txt lists known survivors with a reason: "equivalent" if no caller can
// notice the difference, or why no test notices it. The command fails if less than 90 % of
// the mistakes that are not equivalent are noticed.
//
// Existing tools (gremlins, go-mutesting) compile once per mistake and run either the
// package's own tests or all tests. Much of the recipes is tested from other packages.
// These tools also drop no statements and no elements.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	root   = ".." // of the module; this is a command of the module tools
	module = "github.com/zkrecipes/zkrecipes"
	list   = "testdata/mutants.txt"
	wanted = 0.9
)

// target is a set of packages, whose own tests cover them. The host's tests also cover the
// client, which continues with another plugin when one dies. If contract names a transport,
// the contract tests over it and some seeds of the simulation cover the packages too.
type target struct{ name, packages, contract string }

var targets = []target{
	{"zookeeper", "recipes/zookeeper recipes/zookeeper/internal/*", "direct"},
	{"rpc", "internal/rpc/* host", "in-memory"},
	{"recipes", "recipes", "direct"},
	{"audit", "internal/audit internal/txnlog", ""},
}

// contractTests is the package of the contract tests. They are one test function, whose
// subtests for each recipe run alone.
const contractTests = "recipes/recipestest"

// simulationTests is the package of the simulation. A hundred seeds of it take seconds.
const (
	simulationTests = "internal/testing/simulation"
	simulatedSeeds  = "100"
)

func main() {
	sample := flag.Int("sample", 40, "random mistakes in each target; 0 for all")
	seed := flag.Uint64("seed", 1, "seed of the random choice")
	only := flag.String("target", "", "zookeeper, rpc, recipes or audit; default all")
	match := flag.String("match", "", "only mistakes whose name in the list this regular expression matches")
	length := flag.Duration("for", 8*time.Minute, "maximum time for each target; mistakes not tried by then are not counted")
	flag.Parse()
	names, err := regexp.Compile(*match)
	if err == nil {
		err = os.Chdir(root)
	}
	if err == nil {
		err = run(*sample, *seed, *only, names, *length)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(sample int, seed uint64, only string, match *regexp.Regexp, length time.Duration) error {
	known, err := readList(list)
	if err != nil {
		return err
	}
	var all score
	for _, t := range targets {
		if only != "" && t.name != only {
			continue
		}
		end := time.Now().Add(length)
		mutants, err := choose(t, sample, seed, match)
		if err != nil {
			return err
		}
		s, err := try(t, mutants, known, end)
		if err != nil {
			return err
		}
		all.add(s)
	}
	fmt.Println(all)
	if all.share() < wanted {
		return fmt.Errorf("less than %.0f %% were noticed", 100*wanted)
	}
	return nil
}

// choose finds the mistakes of a target and returns a sample of them.
func choose(t target, sample int, seed uint64, match *regexp.Regexp) (chosen []mutant, err error) {
	dirs, err := folders(t.packages)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		found, err := find(dir)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, found...)
	}
	total := len(chosen)
	chosen = slices.DeleteFunc(chosen, func(m mutant) bool { return !match.MatchString(m.id()) })
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	if sample > 0 && len(chosen) > sample {
		chosen = chosen[:sample]
	}
	for i := range chosen {
		chosen[i].number = i
	}
	fmt.Printf("%s: %d mistakes can be planted, %d are (-sample %d -seed %d)\n", t.name, total, len(chosen), sample, seed)
	return chosen, nil
}

// folders returns the folders with Go files that match patterns, separated by spaces.
func folders(patterns string) (dirs []string, err error) {
	for _, pattern := range strings.Fields(patterns) {
		found, err := glob(pattern)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, found...)
	}
	return dirs, nil
}

// score counts mistakes by their result.
type score struct{ noticed, survived, equivalent, notTried int }

func (s *score) add(o score) {
	s.noticed += o.noticed
	s.survived += o.survived
	s.equivalent += o.equivalent
	s.notTried += o.notTried
}

func (s score) share() float64 {
	if s.noticed == 0 {
		return 0
	}
	return float64(s.noticed) / float64(s.noticed+s.survived)
}

func (s score) String() string {
	return fmt.Sprintf("%d noticed, %d survived, %d equivalent, %d not tried: %.1f %% noticed",
		s.noticed, s.survived, s.equivalent, s.notTried, 100*s.share())
}

// readList reads the known survivors and their reasons. A line without indentation is the
// id of a mistake. The indented lines below it are the reason.
func readList(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	reasons := make(map[string]string)
	var id string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch reason, indented := strings.CutPrefix(line, "    "); {
		case line == "" || strings.HasPrefix(line, "#"):
		case indented && id != "":
			reasons[id] = strings.TrimSpace(reasons[id] + " " + reason)
		case indented:
			return nil, fmt.Errorf("%s: a reason without a mistake: %q", path.Base(name), line)
		default:
			id = line
			reasons[id] = ""
		}
	}
	for id, reason := range reasons {
		if reason == "" {
			return nil, fmt.Errorf("%s: no reason for %s", path.Base(name), id)
		}
	}
	return reasons, nil
}
