// Command servertable writes the table of docs/servers.md:
//
//	servertable PAGE FOLDER...
//
// Each folder is named after a version of ZooKeeper, such as zookeeper-3.8.0, and contains the
// output of go test -json: contract.json, and a file for each other kind of test. The table
// replaces what stands between the markers in the page.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const begin, end = "<!-- table: .ci/suite servers -->\n", "<!-- end of the table -->\n"

// others are the kinds of tests besides the contract, in the order of the table.
var others = []string{"conformance", "faults", "partition"}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: servertable PAGE FOLDER...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "servertable:", err)
		os.Exit(1)
	}
}

func run(page string, folders []string) error {
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(content), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no lines %q and %q", page, begin, end)
	}
	var versions []version
	for _, folder := range folders {
		v, err := read(folder)
		if err != nil {
			return err
		}
		versions = append(versions, v)
	}
	return os.WriteFile(page, []byte(before+begin+table(versions)+end+after), 0o644)
}

// count holds how many tests ended in each way.
type count struct{ passed, skipped, failed int }

func (c count) String() string {
	switch {
	case c == count{}:
		return "not tested"
	case c.failed > 0:
		return fmt.Sprintf("**%d failed** of %d", c.failed, c.passed+c.skipped+c.failed)
	case c.skipped > 0:
		return fmt.Sprintf("%d of %d", c.passed, c.passed+c.skipped)
	}
	return fmt.Sprint(c.passed)
}

func (c *count) add(action string) {
	switch action {
	case "pass":
		c.passed++
	case "skip":
		c.skipped++
	case "fail":
		c.failed++
	}
}

// version holds the results on one version of ZooKeeper.
type version struct {
	name    string
	groups  map[string]*count // of the contract, by recipe
	kinds   map[string]*count
	skipped map[string]int // tests of the contract, by their last element
}

func read(folder string) (version, error) {
	v := version{strings.TrimPrefix(filepath.Base(folder), "zookeeper-"), map[string]*count{}, map[string]*count{}, map[string]int{}}
	results, err := results(filepath.Join(folder, "contract.json"))
	if err != nil {
		return v, err
	}
	for _, name := range leaves(results) {
		_, rest, ok := strings.Cut(name, "/contract/") // TestContract/direct/real/contract/GROUP/...
		group, _, _ := strings.Cut(rest, "/")
		group = strings.ReplaceAll(group, "_", " ")
		if !ok {
			group = name // it ended before its first test
		}
		if v.groups[group] == nil {
			v.groups[group] = new(count)
		}
		v.groups[group].add(results[name])
		if results[name] == "skip" {
			v.skipped[strings.ReplaceAll(name[strings.LastIndex(name, "/")+1:], "_", " ")]++
		}
	}
	for _, kind := range others {
		v.kinds[kind] = new(count)
		results, err := resultsIfAny(filepath.Join(folder, kind+".json"))
		if err != nil {
			return v, err
		}
		for _, name := range leaves(results) {
			v.kinds[kind].add(results[name])
		}
	}
	return v, nil
}

// results returns how each test of a file ended. A test that has not ended has failed.
func results(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ended := map[string]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var event struct{ Action, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Test == "" {
			continue // output of the build, or an event of a package
		}
		switch event.Action {
		case "run":
			ended[event.Test] = "fail"
		case "pass", "skip", "fail":
			ended[event.Test] = event.Action
		}
	}
	return ended, lines.Err()
}

func resultsIfAny(path string) (map[string]string, error) {
	all, err := results(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, err
}

// leaves returns the tests that have no subtests.
func leaves(results map[string]string) []string {
	parents := map[string]bool{}
	for name := range results {
		for at, c := range name {
			if c == '/' {
				parents[name[:at]] = true
			}
		}
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if !parents[name] {
			names = append(names, name)
		}
	}
	return names
}

func table(versions []version) string {
	var b strings.Builder
	head, rule := "| |", "|---|"
	groups := map[string]bool{}
	for _, v := range versions {
		head += " " + v.name + " |"
		rule += "---|"
		for group := range v.groups {
			groups[group] = true
		}
	}
	fmt.Fprintf(&b, "%s\n%s\n", head, rule)
	row := func(name string, cell func(version) *count) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, v := range versions {
			c := cell(v)
			if c == nil {
				c = new(count)
			}
			fmt.Fprintf(&b, " %v |", *c)
		}
		b.WriteString("\n")
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		row("contract: "+group, func(v version) *count { return v.groups[group] })
	}
	for _, kind := range others {
		row(kind, func(v version) *count { return v.kinds[kind] })
	}
	for _, v := range versions {
		if len(v.skipped) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\nSkipped on %s:\n\n", v.name)
		for _, name := range slices.Sorted(maps.Keys(v.skipped)) {
			fmt.Fprintf(&b, "- %s (%d tests)\n", name, v.skipped[name])
		}
	}
	return b.String()
}
