// Command mutants plants mistakes in the source, one at a time, and lists those that no fast
// test notices:
//
//	go -C tools run ./mutants -sample 10
//	go -C tools run ./mutants -sample 1000 -match '^host/upgrade.go'
//
// It drops statements, ignores an operand of && or ||, and leaves out elements of a slice (the
// check in a transaction). It runs the tests of the package first, then those of the same part,
// and then others that reach the part. It compiles by an overlay, so go test runs only packages
// that the mistake can change, and has the results of the others in its cache. A test that fails
// must pass without the mistake, or its failure may only show that the machine is busy.
//
// testdata/mutants.txt lists mistakes that are not planted, each with the reason why no test
// notices it. The command fails if another mistake survives.
//
// Gremlins (v0.6.0) does not serve. For each mistake it runs either the tests of the package, or
// those of the whole module, which take minutes; tests of other packages notice much of the
// recipes. It takes no sample, has no list of equivalent mistakes, and drops neither statements
// nor elements. This command does not plant what gremlins plants: other operators and boundaries.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
)

const (
	root = ".." // of the module; this is a command of the module tools
	list = "testdata/mutants.txt"
)

// part is a set of packages whose tests notice each other's mistakes.
type part struct {
	packages []string
	tests    [][]string // others that notice mistakes in these packages: the arguments of go test
}

var parts = []part{
	{[]string{"./recipes/zookeeper/..."}, [][]string{contract("direct"), simulation}},
	{[]string{"./internal/rpc/...", "./host"}, [][]string{contract("in-memory"), simulation}},
	{[]string{"./recipes"}, [][]string{contract("direct"), simulation}},
	{[]string{"./internal/audit", "./internal/txnlog"}, nil},
}

// simulation has a hundred seeds, which take seconds.
var simulation = []string{"./internal/testing/simulation", "-run=^TestSimulation$", "-args", "-seeds=100"}

func contract(transport string) []string {
	return []string{"./recipes/recipestest", "-run=^TestContract$/^" + transport + "$/^embedded$"}
}

func main() {
	sample := flag.Int("sample", 10, "at most this many random mistakes in each part")
	seed := flag.Uint64("seed", 1, "seed of the random choice")
	match := regexp.MustCompile("")
	flag.TextVar(match, "match", match, "regular `expression`: only mistakes whose file and name match")
	flag.Parse()
	if err := run(*sample, *seed, match); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(sample int, seed uint64, match *regexp.Regexp) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	known, err := readList(list)
	if err != nil {
		return err
	}
	counts := make(map[result]int)
	for _, p := range parts {
		all, err := findAll(p.packages)
		if err != nil {
			return err
		}
		for _, m := range choose(all, sample, seed, match, known) {
			r, by, err := try(m, p)
			if err != nil {
				return err
			}
			counts[r]++
			fmt.Printf("%s%s (line %d): %s\n", r, by, m.line, m.id)
		}
	}
	for _, r := range []result{noticed, survived, notBuilt, timedOut} {
		fmt.Printf("%d %s\n", counts[r], r)
	}
	if counts[survived] > 0 {
		return errors.New("write tests that notice the mistakes, or their reasons into " + list)
	}
	return nil
}

// choose returns at most n of the mutants that match and are not known.
func choose(all []mutant, n int, seed uint64, match *regexp.Regexp, known []string) []mutant {
	all = slices.DeleteFunc(all, func(m mutant) bool { return !match.MatchString(m.id) || slices.Contains(known, m.id) })
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// entry matches a mistake in the list, and the first line of its reason below it.
var entry = regexp.MustCompile(`(?m)^([^#\s].*)(\n    \S.*)?`)

// readList returns the ids of mistakes that are not planted.
func readList(name string) (ids []string, err error) {
	text, err := os.ReadFile(name)
	for _, found := range entry.FindAllStringSubmatch(string(text), -1) {
		if found[2] == "" {
			return nil, fmt.Errorf("%s: no reason below %s", name, found[1])
		}
		ids = append(ids, found[1])
	}
	return ids, err
}
