package main

import (
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
)

// A thousand contenders, each with a session of its own, fit in one process and
// on one server, and the line drains at the same exact cost.
func TestAThousandContendersOnOneRealServer(t *testing.T) {
	testall.Require(t)
	ensembletest.Require(t)
	code, stdout, stderr := whole(t, "run", "-ensemble", "1", "-strategy", "predecessor", "-contenders", "1000", "-count", "1")
	if code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, stderr)
	}
	for _, want := range []string{"contenders=1000", " 999 ", " 1 watch-events/op", " 2 reads/op", "MB-rss"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}
