package recipestest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// history records what contenders did, for a check afterwards. Its clock is the monotonic clock
// of this process.
type history struct {
	began time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
}

func newHistory() *history { return &history{began: time.Now()} }

// step is one operation that succeeded. The model does not need the others: a refused operation
// changes nothing, and one with an unknown outcome cannot contradict it.
type step struct {
	kind  stepKind
	token recipes.Token
}

type stepKind string

const (
	granted  stepKind = "granted"  // at some time between the call and the return
	wrote    stepKind = "wrote"    // a guarded write, or another proof that the grant is held
	released stepKind = "released" // the grant writes nothing after the call
)

// record runs an operation. If it returns a token, record adds it to the history.
func (h *history) record(client int, kind stepKind, op func() recipes.Token) {
	call := time.Since(h.began)
	token := op()
	end := time.Since(h.began)
	if token == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{
		ClientId: client, Input: step{kind, token}, Call: int64(call), Return: int64(end),
	})
}

func (h *history) count(kind stepKind) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, op := range h.ops {
		if op.Input.(step).kind == kind {
			n++
		}
	}
	return n
}

// line is the state of the model: the latest grant, and whether it is held.
type line struct {
	latest recipes.Token
	held   bool
}

// fenced models the promises that rest on no clock. Tokens grow. A guarded write is committed
// before its grant is released, and before the next grant.
var fenced = porcupine.Model{
	Init: func() any { return line{} },
	Step: func(state, input, _ any) (bool, any) {
		l, s := state.(line), input.(step)
		switch s.kind {
		case granted:
			return s.token > l.latest, line{s.token, true}
		case wrote:
			return l.held && s.token == l.latest, l
		default:
			// A release after the next grant belongs to a hold that was lost
			// earlier. It changes nothing.
			if s.token == l.latest {
				l.held = false
			}
			return s.token <= l.latest, l
		}
	},
	DescribeOperation: func(input, _ any) string {
		s := input.(step)
		return fmt.Sprintf("%s %d", s.kind, s.token)
	},
}

// exclusive is fenced, with at most one grant at a time. It holds for histories in which no
// session ends.
var exclusive = porcupine.Model{
	Init: fenced.Init,
	Step: func(state, input, _ any) (bool, any) {
		l, s := state.(line), input.(step)
		switch s.kind {
		case granted:
			return !l.held && s.token > l.latest, line{s.token, true}
		case wrote:
			return l.held && s.token == l.latest, l
		default:
			return l.held && s.token == l.latest, line{l.latest, false}
		}
	},
	DescribeOperation: fenced.DescribeOperation,
}

func (h *history) check(t testing.TB, model porcupine.Model) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if result := porcupine.CheckOperationsTimeout(model, h.ops, watchdog.Patience); result != porcupine.Ok {
		t.Errorf("the history of %d operations is %s", len(h.ops), result)
		for _, op := range h.ops {
			t.Logf("contender %d, %v to %v: %s", op.ClientId, time.Duration(op.Call), time.Duration(op.Return),
				model.DescribeOperation(op.Input, nil))
		}
	}
}

// TestCheckersRefuseBrokenLocks: the models must reject histories that break the contract.
func TestCheckersRefuseBrokenLocks(t *testing.T) {
	op := func(kind stepKind, token recipes.Token, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: step{kind, token}, Call: call, Return: end}
	}
	for _, test := range []struct {
		name              string
		fenced, exclusive bool
		ops               []porcupine.Operation
	}{
		{"in turn", true, true, []porcupine.Operation{
			op(granted, 1, 0, 1), op(wrote, 1, 2, 3), op(released, 1, 4, 5), op(granted, 2, 0, 6), op(released, 2, 7, 8)}},
		{"lost, then granted to the next", true, false, []porcupine.Operation{
			op(granted, 1, 0, 1), op(granted, 2, 2, 3), op(wrote, 2, 4, 5)}},
		{"two at a time", true, false, []porcupine.Operation{
			op(granted, 1, 0, 1), op(granted, 2, 2, 3), op(released, 1, 4, 5)}},
		{"a token that shrinks", false, false, []porcupine.Operation{
			op(granted, 2, 0, 1), op(released, 2, 2, 3), op(granted, 1, 4, 5)}},
		{"a late write", false, false, []porcupine.Operation{
			op(granted, 1, 0, 1), op(granted, 2, 2, 3), op(wrote, 1, 4, 5)}},
		{"a write after the release", false, false, []porcupine.Operation{
			op(granted, 1, 0, 1), op(released, 1, 2, 3), op(wrote, 1, 4, 5)}},
		{"a write while the next is granted", true, false, []porcupine.Operation{
			op(granted, 1, 0, 1), op(granted, 2, 2, 6), op(wrote, 1, 3, 5)}},
	} {
		if got := porcupine.CheckOperations(fenced, test.ops); got != test.fenced {
			t.Errorf("%s: fenced accepts it: %v; want %v", test.name, got, test.fenced)
		}
		if got := porcupine.CheckOperations(exclusive, test.ops); got != test.exclusive {
			t.Errorf("%s: exclusive accepts it: %v; want %v", test.name, got, test.exclusive)
		}
	}
}
