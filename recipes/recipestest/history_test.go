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

// history is what contenders did and saw, for a check afterwards. The clock is
// this process's monotonic one.
type history struct {
	began time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
}

func newHistory() *history { return &history{began: time.Now()} }

// step is one operation that was answered. Those whose outcome is unknown or
// that were refused change nothing that the model could contradict.
type step struct {
	kind  stepKind
	token recipes.Token
}

type stepKind string

const (
	granted  stepKind = "granted"  // between the call and the return
	wrote    stepKind = "wrote"    // a guarded write, or any other proof, that it stands
	released stepKind = "released" // from the call on, nothing is written
)

// record runs an operation and notes it, if it returns a token.
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

// line is the model's state: the latest grant, and whether it stands.
type line struct {
	latest recipes.Token
	stands bool
}

// fenced is what the contract promises whatever the clocks say. Tokens grow. What
// is written with the guard of one grant is written before it is given back, and
// before the next is granted.
var fenced = porcupine.Model{
	Init: func() any { return line{} },
	Step: func(state, input, _ any) (bool, any) {
		l, s := state.(line), input.(step)
		switch s.kind {
		case granted:
			return s.token > l.latest, line{s.token, true}
		case wrote:
			return l.stands && s.token == l.latest, l
		default:
			// A release that comes after the next grant is that of a hold
			// that had been lost; the server has refused it.
			if s.token == l.latest {
				l.stands = false
			}
			return s.token <= l.latest, l
		}
	},
	DescribeOperation: func(input, _ any) string {
		s := input.(step)
		return fmt.Sprintf("%s %d", s.kind, s.token)
	},
}

// exclusive is fenced, and at most one is granted at a time: for histories in
// which no session ends.
var exclusive = porcupine.Model{
	Init: fenced.Init,
	Step: func(state, input, _ any) (bool, any) {
		l, s := state.(line), input.(step)
		switch s.kind {
		case granted:
			return !l.stands && s.token > l.latest, line{s.token, true}
		case wrote:
			return l.stands && s.token == l.latest, l
		default:
			return l.stands && s.token == l.latest, line{l.latest, false}
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

// The checkers must be able to say no.
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
		{"lost, then the next", true, false, []porcupine.Operation{
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
			t.Errorf("%s: fenced says %v; want %v", test.name, got, test.fenced)
		}
		if got := porcupine.CheckOperations(exclusive, test.ops); got != test.exclusive {
			t.Errorf("%s: exclusive says %v; want %v", test.name, got, test.exclusive)
		}
	}
}
