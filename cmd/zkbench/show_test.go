package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
)

// A person at a terminal gets a table that fits it, and a program in a pipe the
// results.
func TestOutputIsForWhoeverReadsIt(t *testing.T) {
	for _, tt := range []struct {
		name      string
		columns   int // 0: no terminal
		args      []string
		results   bool
		said      bool
		least     int // of the longest line of the table; 0: there is none
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
		c := over(&stdout, &stderr, new(fake.World).Open)
		c.terminal = func(io.Writer) (int, bool) { return tt.columns, tt.columns > 0 }
		args := append([]string{"run", "-strategy", "predecessor", "-contenders", "3", "-count", "1"}, tt.args...)
		if code := c.run(t.Context(), args); code != exitOK {
			t.Fatalf("%s: exit code %d:\n%s", tt.name, code, stderr.String())
		}
		if got := strings.Contains(stdout.String(), "\nBenchmark"); got != tt.results {
			t.Errorf("%s: results on stdout: %v; want %v", tt.name, got, tt.results)
		}
		if got := strings.Contains(stderr.String(), "zkbench: 1 trials on"); got != tt.said {
			t.Errorf("%s: told what is run: %v; want %v", tt.name, got, tt.said)
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
	code, _, stderr := zkbench(t.Context(), new(fake.World).Open, "run", "-table", "round")
	if code != exitUsage || !strings.Contains(stderr, `-table "round": wide, narrow or none`) {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

// What goes into a file is not printed beside it, unless the run fails and leaves no file.
func TestResultsGoToOnePlace(t *testing.T) {
	sound, broken := new(fake.World), &fake.World{Defect: fake.TwoHolders}
	file := filepath.Join(t.TempDir(), "results.txt")
	args := []string{"run", "-recipe", "lock", "-strategy", "predecessor", "-contenders", "4", "-count", "2", "-out", file}
	code, stdout, stderr := zkbench(t.Context(), sound.Open, args...)
	text, err := os.ReadFile(file)
	if code != exitOK || stdout != "" || err != nil || strings.Count(string(text), "\nBenchmark") != 2 {
		t.Errorf("exit code %d, stdout %q, file %q, %v:\n%s", code, stdout, text, err, stderr)
	}
	code, stdout, _ = zkbench(t.Context(), after(4, sound.Open, broken.Open), args...)
	kept, err := os.ReadFile(file)
	if code != exitBroken || strings.Count(stdout, "\nBenchmark") != 1 || err != nil || !bytes.Equal(kept, text) {
		t.Errorf("of a run that failed: exit code %d, stdout %q, and the former file is now %q, %v", code, stdout, kept, err)
	}
}

// A run that measured zkbench itself does not pass for one that measured the servers.
func TestMostlyInvalidTrialsAreAnExitCode(t *testing.T) {
	of := func(contenders int, invalid ...bool) (all []record.Record) {
		for _, i := range invalid {
			r := record.Record{Recipe: load.Lock, Workload: load.Drain, Contenders: contenders, Transport: direct}
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
		{"a row that is too short to decide, few of all", append(of(2, true, true), of(3, false, false, false)...), false},
	} {
		if got := mostlyInvalid(tt.records); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	file := filepath.Join(t.TempDir(), "results.txt")
	var out, errs bytes.Buffer
	c := over(&out, &errs, new(fake.World).Open)
	c.check = func(record.Record) []string { return []string{"zkbench was the limit"} }
	code := c.run(t.Context(), []string{"run", "-strategy", "herd", "-contenders", "3", "-count", "1", "-out", file})
	if text, err := os.ReadFile(file); code != exitInvalid || !strings.Contains(string(text), "\nBenchmark") || !strings.Contains(errs.String(), "1 of 1 trials are invalid") {
		t.Errorf("exit code %d, file %q, %v:\n%s", code, text, err, errs.String())
	}
}
