package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// At a terminal, zkbench writes a table that fits its width. In a pipe, it also writes the
// results to stdout.
func TestOutputDependsOnItsReader(t *testing.T) {
	for _, tt := range []struct {
		name      string
		columns   int // 0: no terminal
		args      []string
		results   bool
		said      bool
		least     int // width of the longest line of the table; 0: there is no table
		atMost    int
		leavesOut bool
	}{
		{"pipe", 0, nil, true, true, 120, 200, false},
		{"pipe, raw", 0, []string{"-raw"}, true, true, 120, 200, false},
		{"pipe, narrow", 0, []string{"-table", "narrow"}, true, true, 50, 80, true},
		{"terminal", 100, nil, false, true, 70, 100, true},
		{"terminal, raw", 100, []string{"-raw"}, true, true, 70, 100, true},
		{"terminal, wide", 100, []string{"-table", "wide"}, false, true, 120, 200, false},
		{"wide terminal", 300, nil, false, true, 120, 200, false},
		{"no table", 0, []string{"-table", "none"}, true, true, 0, 0, false},
		{"quiet", 0, []string{"-quiet"}, true, false, 0, 0, false},
		{"quiet terminal", 100, []string{"-quiet"}, false, false, 0, 0, false},
	} {
		var stdout, stderr bytes.Buffer
		c := over(&stdout, &stderr, zookeeper.Open)
		c.terminal = func(io.Writer) (int, bool) { return tt.columns, tt.columns > 0 }
		args := append([]string{"run", "-strategy", "predecessor", "-contenders", "3", "-count", "1"}, tt.args...)
		if code := c.run(t.Context(), args); code != exit.OK {
			t.Fatalf("%s: exit code %d:\n%s", tt.name, code, stderr.String())
		}
		if got := strings.Contains(stdout.String(), "\nBenchmark"); got != tt.results {
			t.Errorf("%s: results on stdout: %v; want %v", tt.name, got, tt.results)
		}
		if got := strings.Contains(stderr.String(), "zkbench: 1 trial on"); got != tt.said {
			t.Errorf("%s: the first message is on stderr: %v; want %v", tt.name, got, tt.said)
		}
		_, table, _ := strings.Cut(stderr.String(), "seed 1\n")
		if i := strings.LastIndex(table, "\r"); i >= 0 { // the bar of a terminal
			table = table[i+1:]
		}
		longest := 0
		for line := range strings.Lines(table) {
			if !strings.HasPrefix(line, "(no room") {
				longest = max(longest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
			}
		}
		if longest < tt.least || longest > tt.atMost {
			t.Errorf("%s: the table is %d wide; want %d to %d:\n%s", tt.name, longest, tt.least, tt.atMost, table)
		}
		if got := strings.Contains(table, "(no room for"); got != tt.leavesOut {
			t.Errorf("%s: columns are left out: %v; want %v:\n%s", tt.name, got, tt.leavesOut, table)
		}
	}
	code, _, stderr := zkbench(t.Context(), zookeeper.Open, "run", "-table", "round")
	if code != exit.Misuse || !strings.Contains(stderr, `-table "round": wide, narrow or none`) {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

// Results in a file are not also printed, not even those of a run that fails.
func TestResultsGoToOnePlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.txt")
	args := []string{"run", "-recipe", "lock", "-strategy", "predecessor", "-contenders", "4", "-count", "2", "-out", file}
	code, stdout, stderr := zkbench(t.Context(), zookeeper.Open, args...)
	text, err := os.ReadFile(file)
	if code != exit.OK || stdout != "" || err != nil || strings.Count(string(text), "\nBenchmark") != 2 {
		t.Errorf("exit code %d, stdout %q, file %q, %v:\n%s", code, stdout, text, err, stderr)
	}
	code, stdout, _ = zkbench(t.Context(), after(4, zookeeper.Open, with(apart, zookeeper.Open)), args...)
	text, err = os.ReadFile(file)
	if code != exit.Broken || stdout != "" || err != nil || strings.Count(string(text), "\nBenchmark") != 1 {
		t.Errorf("of a run that failed: exit code %d, stdout %q, file %q, %v", code, stdout, text, err)
	}
}

// If zkbench itself was the limit, the run must not look like a measurement of the servers.
func TestMostlyInvalidTrialsAreAnExitCode(t *testing.T) {
	of := func(contenders int, invalid ...bool) (all []record.Record) {
		for _, i := range invalid {
			r := record.Record{Recipe: load.Lock, Workload: load.Drain, Contenders: contenders, Transport: transport.Direct}
			if i {
				r.Invalid = []string{"zkbench was the limit"}
			}
			all = append(all, r)
		}
		return all
	}
	for _, tt := range []struct {
		name    string
		records []record.Record
		want    bool
	}{
		{"none", nil, false},
		{"all valid", of(2, false, false), false},
		{"half", of(2, true, false), false},
		{"more than half", of(2, true, false, true), true},
		{"more than half of one row, few of all", append(of(2, true, true, false), of(3, false, false, false)...), true},
		{"all repeated by a continued sweep", of(2, true, true, true, false, false), false},
		{"a row that is too short to decide, few of all", append(of(2, true, true), of(3, false, false, false)...), false},
	} {
		if got := mostlyInvalid(tt.records, 2); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	file := filepath.Join(t.TempDir(), "results.txt")
	var out, errs bytes.Buffer
	c := over(&out, &errs, zookeeper.Open)
	c.check = func(record.Record) []string { return []string{"zkbench was the limit"} }
	code := c.run(t.Context(), []string{"run", "-strategy", "herd", "-contenders", "3", "-count", "1", "-out", file})
	if text, err := os.ReadFile(file); code != exit.Invalid || !strings.Contains(string(text), "\nBenchmark") || !strings.Contains(errs.String(), "1 of 1 trial invalid") {
		t.Errorf("exit code %d, file %q, %v:\n%s", code, text, err, errs.String())
	}
}

// TestShortHelpFitsOnAScreen: -h of each verb, and of zkbench itself, has the examples, the
// common flags, the exit codes, and where the rest is.
func TestShortHelpFitsOnAScreen(t *testing.T) {
	texts := map[string]string{"zkbench": helpOf(t, "-h")}
	shape := regexp.MustCompile(`(?s)^Usage: zkbench [^\n]*\n\n(.*?)\n\nExamples:\n(.*?)\n\nCommon flags:\n  -.*\n\nExit codes: (.*)\n\nMore: ([^\n]*)\n$`)
	for _, v := range verbs() {
		help := helpOf(t, v.name, "-h")
		texts[v.name] = help
		part := shape.FindStringSubmatch(help)
		if part == nil {
			t.Errorf("the help of %s has another shape:\n%s", v.name, help)
			continue
		}
		examples, codes, more := part[2], part[3], part[4]
		if lines := strings.Split(examples, "\n"); len(lines) != 2 || !strings.Contains(examples, "zkbench "+v.name) {
			t.Errorf("%s -h has these examples:\n%s", v.name, examples)
		}
		_, list, _ := strings.Cut(helpOf(t, "help", v.name), "Exit codes:")
		for _, line := range regexp.MustCompile(`(?m)^\t(\d+) `).FindAllStringSubmatch(list, -1) {
			if !regexp.MustCompile(`(^|\s)` + line[1] + `\s`).MatchString(codes) {
				t.Errorf("%s -h lacks exit code %s: %s", v.name, line[1], codes)
			}
		}
		if want := "zkbench help " + v.name + ", man zkbench-" + v.name; more != want {
			t.Errorf("%s -h ends with %q; want %q", v.name, more, want)
		}
	}
	for name, text := range texts {
		if n := strings.Count(text, "\n"); n > helptext.Lines {
			t.Errorf("-h of %s has %d lines; a screen has room for %d:\n%s", name, n, helptext.Lines, text)
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helptext.Columns {
				t.Errorf("-h of %s has a line of %d columns: %s", name, n, line)
			}
		}
	}
}

// helpOf returns the help that these arguments print.
func helpOf(t *testing.T, args ...string) string {
	code, stdout, stderr := zkbench(t.Context(), zookeeper.Open, args...)
	if code != exit.OK || stderr != "" {
		t.Errorf("%q: exit code %d, stderr %q", args, code, stderr)
	}
	return stdout
}

// Without a terminal, a run still reports its progress, even within a long trial.
func TestProgressOffATerminalIsALineEvery30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		trials := slices.Repeat([]bench.Trial{{Contenders: 1}}, 4)
		p := newProgress(trials)
		go p.sayOften(func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) })
		p.skip(trials[0])
		for _, takes := range []time.Duration{31, 17, 43} {
			p.beginTrial(trials[0])
			time.Sleep(takes * time.Second)
			p.step()
		}
		p.endAll()
		time.Sleep(time.Hour)
		want := []string{"1 of 4 trials, remaining time not known yet", "3 of 4 trials, about 24s left", "3 of 4 trials, about 24s left"}
		if !slices.Equal(lines, want) {
			t.Errorf("said %q; want %q", lines, want)
		}
	})
}

func TestRemainingTimeDependsOnTheContenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small, large := bench.Trial{Contenders: 1}, bench.Trial{Contenders: 100}
		p := newProgress([]bench.Trial{small, large, small, large})
		for _, tt := range []struct {
			trial bench.Trial
			takes time.Duration
			want  string
		}{{small, time.Second, "about 3m21s left"}, {large, 9 * time.Second, "about 10s left"}} {
			p.beginTrial(tt.trial)
			time.Sleep(tt.takes)
			p.step()
			if got := p.remaining(); got != tt.want {
				t.Errorf("after %v: %s; want %s", tt.takes, got, tt.want)
			}
		}
	})
}
