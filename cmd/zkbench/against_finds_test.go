package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestAgainstFindsATenthAndNothingElse compares a build with itself, and with one that is
// slower by a tenth of each operation, ZKRECIPES_AGAINST times each. It takes half a minute
// for each, and is for make test-against.
func TestAgainstFindsATenthAndNothingElse(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("ZKRECIPES_AGAINST"))
	if runs == 0 {
		t.Skip("ZKRECIPES_AGAINST is not set: make test-against")
	}
	self, err := exec.LookPath("zkbench-build")
	if err != nil {
		t.Fatal(err)
	}
	slower := filepath.Join(t.TempDir(), "slower")
	script := fmt.Sprintf("#!/bin/sh\nSLOWER=10%% exec %s \"$@\"\n", self)
	if err := os.WriteFile(slower, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	falsely, found := 0, 0
	for i := range runs {
		if said := verdicts(t, self, self); difference.MatchString(said) {
			falsely++
			t.Logf("the same build:\n%s", said)
		}
		said := verdicts(t, self, slower)
		if ofTime, _, _ := strings.Cut(said, "\n\n"); strings.HasSuffix(ofTime, " better") {
			found++
		} else {
			t.Logf("a tenth slower:\n%s", said)
		}
		t.Logf("after %d runs of each: the tenth was found in %d, and a difference of equal builds in %d", i+1, found, falsely)
	}
	if most := runs / 20; falsely > most || found < runs-most {
		t.Errorf("of %d runs %d found the tenth, and %d a difference that is not there; at most %d may be wrong", runs, found, falsely, most)
	}
}

// difference is a verdict other than none.
var difference = regexp.MustCompile(`(?m) (better|WORSE)$`)

// ofAPair are the flags of trials that are short, and long enough for hundreds of
// operations.
var ofAPair = strings.Fields("-embedded -quiet -recipe lock -workload cycle -strategy handoff -contenders 10 -duration 300ms -warmup 50ms")

// verdicts is what a build says of itself against another, in ZKRECIPES_PAIRS (20) pairs.
func verdicts(t *testing.T, self, against string) string {
	t.Helper()
	args := append([]string{"run", "-count=" + cmp.Or(os.Getenv("ZKRECIPES_PAIRS"), "20"), "-against=" + against}, ofAPair...)
	out, err := exec.Command(self, args...).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
