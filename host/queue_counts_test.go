package host_test

import (
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/host/hosttest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const writesOfATake = 1

// TestATakeThroughThePluginWritesNoMoreThanRecorded counts the transactions of the plugin's session.
// `make test-counts` runs it.
func TestATakeThroughThePluginWritesNoMoreThanRecorded(t *testing.T) {
	s := hosttest.New(t).Open(t)
	q := must.Get(s.Queue("/queue", recipes.QueueConfig{}))(t)
	const takes = 20
	for i := range 1 + takes {
		must.Get(q.Put(t.Context(), fmt.Append(nil, i)))(t)
	}
	must.Get(q.Take(t.Context()))(t) // the first Take creates the znodes that all calls need
	before := must.Get(s.Stats(t.Context()))(t)
	for i := range takes {
		if got := must.Get(q.Take(t.Context()))(t); string(got.Data) != fmt.Sprint(i+1) {
			t.Fatalf("took %q; want %d", got.Data, i+1)
		}
	}
	if n := must.Get(q.Len(t.Context()))(t); n != 0 {
		t.Errorf("%d elements are not deleted when their Take has returned", n)
	}
	after := must.Get(s.Stats(t.Context()))(t)
	if n := after.Writes - before.Writes; n > takes*writesOfATake {
		t.Errorf("%d writes in %d takes; recorded are %d in each; %v before, %v after", n, takes, writesOfATake, before.ByKind, after.ByKind)
	} else if n < takes {
		t.Errorf("%d writes in %d takes: not all were counted", n, takes)
	}
}
