package partition_test

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// undecidedAfter bounds the check of one history.
const undecidedAfter = time.Minute

// operations pairs calls with ends, by path. An operation with an unknown outcome, or
// without an end, may take effect at any time after its call, so its return time is
// infinite. An operation that is known to have failed is left out.
//
// Writes must be linearizable. Reads are answered by one server, which may lag, as the
// contract and Apache ZooKeeper say. But the server's state is never older than the state
// that the same session saw in its previous operation on the path. So a read may take
// effect as early as the call of that operation.
func operations(messages []message) map[string][]porcupine.Operation {
	type id struct {
		client  int
		session int64
		op      int64
	}
	type reader struct {
		client  int
		session int64
		path    string
	}
	ends := make(map[id]message)
	for _, m := range messages {
		if m.Op != 0 && m.End != calling {
			ends[id{m.Client, m.Session, m.Op}] = m
		}
	}
	histories := make(map[string][]porcupine.Operation)
	before := make(map[reader]int64)
	for _, m := range messages {
		if m.Op == 0 || m.End != calling || !checked[m.Kind] || m.Path == "both" {
			continue
		}
		last, ok := ends[id{m.Client, m.Session, m.Op}]
		if !ok {
			last = m
			last.End, last.At = unknown, math.MaxInt64
		}
		isRead := m.Kind == get || m.Kind == read
		if last.End == failed || isRead && last.End != done {
			continue
		}
		if last.End == unknown {
			last.At = math.MaxInt64
		}
		who := reader{m.Client, m.Session, m.Path}
		call := m.Call
		if isRead {
			call = before[who] // 0: the beginning
		}
		before[who] = m.Call
		histories[m.Path] = append(histories[m.Path], porcupine.Operation{ClientId: m.Client, Input: last, Call: call, Return: last.At})
	}
	return histories
}

var checked = map[kind]bool{add: true, read: true, get: true, set: true, del: true, put: true, take: true}

// In counterModel the state is the number.
var counterModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		n, m := state.(int64), input.(message)
		switch {
		case m.Kind == read:
			return m.Out == n, n
		case m.End == unknown:
			return true, n + m.In
		default:
			return m.Out == n+m.In, n + m.In
		}
	},
}

// entry is the state of a key. A key that does not exist has the revision 0. If the outcome of a
// set is unknown, its revision is only known to be larger than after, until a client reads it. For
// a deleted key, after is the last revision before the deletion.
type entry struct{ value, revision, after int64 }

// is reports whether the entry can have that revision.
func (e entry) is(revision int64) bool {
	if e.revision == unknownRevision {
		return revision > e.after
	}
	return e.revision == revision
}

const (
	unknownRevision = -2
	anyRevision     = -1
)

// later reports whether a revision can follow.
func (e entry) later(revision int64) bool {
	return revision > max(e.revision, e.after)
}

// In keyModel values are unique, and revisions grow.
var keyModel = porcupine.Model{
	Init: func() any { return entry{} },
	Step: func(state, input, _ any) (bool, any) {
		e, m := state.(entry), input.(message)
		switch {
		case m.Kind == get:
			return m.Out == e.value && e.is(m.Rev), entry{m.Out, m.Rev, e.after}
		case m.End == refused:
			return m.Expect != anyRevision && (e.revision == unknownRevision || e.revision != m.Expect), e
		case m.Expect != anyRevision && !e.is(m.Expect):
			return m.End == unknown, e // the write may have been refused, and the reply lost
		case m.Kind == del && e.revision == 0:
			return m.End == unknown, e
		case m.Kind == del:
			return true, entry{0, 0, max(e.revision, e.after)}
		case m.End == unknown:
			return true, entry{m.In, unknownRevision, max(e.revision, e.after)}
		default:
			return e.later(m.Rev), entry{m.In, m.Rev, 0}
		}
	},
}

// In queueModel the state is the elements in order, each after a space.
var queueModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		elements, m := state.(string), input.(message)
		if m.Kind == put {
			return true, elements + " " + strconv.FormatInt(m.In, 10)
		}
		if m.End == unknown { // the call took the first element, or nothing
			if i := strings.IndexByte(strings.TrimPrefix(elements, " "), ' '); i >= 0 {
				return true, elements[i+1:]
			}
			return true, ""
		}
		rest, ok := strings.CutPrefix(elements+" ", " "+strconv.FormatInt(m.Out, 10)+" ")
		if rest = strings.TrimSuffix(" "+rest, " "); rest == " " {
			rest = ""
		}
		return ok, rest
	},
}

// modelOf returns the model of a path.
func modelOf(path string) porcupine.Model {
	switch {
	case strings.HasPrefix(path, "/counters/"):
		return counterModel
	case strings.HasPrefix(path, "/queues/"):
		return queueModel
	}
	return keyModel
}

// judged counts histories by their verdict.
type judged struct {
	histories, operations, unknown, illegal, undecided int
}

// judge checks all histories of at least two operations.
func judge(t testing.TB, histories map[string][]porcupine.Operation) (sum judged) {
	var mu sync.Mutex
	var all sync.WaitGroup
	next := make(chan string)
	for range 2 {
		all.Go(func() {
			for path := range next {
				ops := histories[path]
				result := porcupine.CheckOperationsTimeout(modelOf(path), ops, undecidedAfter)
				mu.Lock()
				sum.histories++
				sum.operations += len(ops)
				for _, op := range ops {
					if op.Input.(message).End == unknown {
						sum.unknown++
					}
				}
				switch result {
				case porcupine.Illegal:
					sum.illegal++
				case porcupine.Unknown:
					sum.undecided++
				}
				if result != porcupine.Ok {
					t.Errorf("the history of %s is %s:", path, result)
					for _, op := range ops {
						t.Logf("%d to %d: %+v", op.Call, op.Return, op.Input)
					}
				}
				mu.Unlock()
			}
		})
	}
	for path, ops := range histories {
		if len(ops) > 1 {
			next <- path
		}
	}
	close(next)
	all.Wait()
	return sum
}

// The models must reject broken histories.
func TestModelsRefuseBrokenHistories(t *testing.T) {
	op := func(m message, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: m, Call: call, Return: end}
	}
	const never = math.MaxInt64
	for name, test := range map[string]struct {
		path  string
		legal bool
		ops   []porcupine.Operation
	}{
		"counted": {"/counters/", true, []porcupine.Operation{
			op(message{Kind: add, In: 1, Out: 1, End: done}, 0, 1), op(message{Kind: add, In: 2, Out: 3, End: done}, 2, 3)}},
		"counted twice": {"/counters/", false, []porcupine.Operation{
			op(message{Kind: add, In: 1, Out: 2, End: done}, 0, 1)}},
		"not counted": {"/counters/", false, []porcupine.Operation{
			op(message{Kind: add, In: 1, Out: 1, End: done}, 0, 1), op(message{Kind: add, In: 1, Out: 1, End: done}, 2, 3)}},
		"unknown, counted later": {"/counters/", true, []porcupine.Operation{
			op(message{Kind: add, In: 5, End: unknown}, 0, never), op(message{Kind: add, In: 1, Out: 1, End: done}, 2, 3),
			op(message{Kind: add, In: 1, Out: 7, End: done}, 4, 5)}},
		"unknown, counted twice": {"/counters/", false, []porcupine.Operation{
			op(message{Kind: add, In: 5, End: unknown}, 0, never), op(message{Kind: add, In: 1, Out: 11, End: done}, 2, 3)}},
		"set, compared and read": {"key", true, []porcupine.Operation{
			op(message{Kind: set, In: 7, Rev: 10, End: done}, 0, 1), op(message{Kind: set, In: 8, Expect: 10, Rev: 12, End: done}, 2, 3),
			op(message{Kind: get, Out: 8, Rev: 12, End: done}, 4, 5)}},
		"two replace one revision": {"key", false, []porcupine.Operation{
			op(message{Kind: set, In: 7, Rev: 10, End: done}, 0, 1), op(message{Kind: set, In: 8, Expect: 10, Rev: 12, End: done}, 2, 5),
			op(message{Kind: set, In: 9, Expect: 10, Rev: 13, End: done}, 2, 5)}},
		"a revision that shrinks": {"key", false, []porcupine.Operation{
			op(message{Kind: set, In: 7, Rev: 10, End: done}, 0, 1), op(message{Kind: set, In: 8, Expect: -1, Rev: 9, End: done}, 2, 3)}},
		"refused without a reason": {"key", false, []porcupine.Operation{
			op(message{Kind: set, In: 7, Rev: 10, End: done}, 0, 1), op(message{Kind: set, In: 8, Expect: 10, End: refused}, 2, 3)}},
		"deleted, and set again": {"key", true, []porcupine.Operation{
			op(message{Kind: set, In: 7, Rev: 10, End: done}, 0, 1), op(message{Kind: del, Expect: 10, End: done}, 2, 3),
			op(message{Kind: get, End: done}, 4, 5), op(message{Kind: set, In: 8, Rev: 12, End: done}, 6, 7),
			op(message{Kind: set, In: 9, Expect: 10, End: refused}, 8, 9)}},
		"a successor is overwritten": {"key", false, []porcupine.Operation{
			op(message{Kind: set, In: 7, Rev: 10, End: done}, 0, 1), op(message{Kind: del, Expect: 10, End: done}, 2, 3),
			op(message{Kind: set, In: 8, Rev: 12, End: done}, 4, 5), op(message{Kind: set, In: 9, Expect: 10, Rev: 13, End: done}, 2, 7)}},
		"a successor is deleted": {"key", false, []porcupine.Operation{
			op(message{Kind: set, In: 7, Rev: 10, End: done}, 0, 1), op(message{Kind: set, In: 8, Expect: 10, Rev: 12, End: done}, 2, 3),
			op(message{Kind: del, Expect: 10, End: done}, 4, 5)}},
		"deleted, then a revision that shrinks": {"key", false, []porcupine.Operation{
			op(message{Kind: set, In: 7, Rev: 10, End: done}, 0, 1), op(message{Kind: del, Expect: -1, End: done}, 2, 3),
			op(message{Kind: set, In: 8, Rev: 9, End: done}, 4, 5)}},
		"deleted with an unknown outcome, then read": {"key", true, []porcupine.Operation{
			op(message{Kind: set, In: 7, Rev: 10, End: done}, 0, 1), op(message{Kind: del, Expect: 10, End: unknown}, 2, never),
			op(message{Kind: get, Out: 7, Rev: 10, End: done}, 4, 5), op(message{Kind: get, End: done}, 6, 7)}},
		"unknown, then read": {"key", true, []porcupine.Operation{
			op(message{Kind: set, In: 7, End: unknown}, 0, never), op(message{Kind: get, Out: 7, Rev: 10, End: done}, 2, 3),
			op(message{Kind: set, In: 8, Expect: 10, Rev: 11, End: done}, 4, 5)}},
		"read, and then not": {"key", false, []porcupine.Operation{
			op(message{Kind: set, In: 7, End: unknown}, 0, never), op(message{Kind: get, Out: 7, Rev: 10, End: done}, 2, 3),
			op(message{Kind: get, End: done}, 4, 5)}},
		"in order": {"/queues/", true, []porcupine.Operation{
			op(message{Kind: put, In: 1, End: done}, 0, 1), op(message{Kind: put, In: 12, End: done}, 2, 3),
			op(message{Kind: take, Out: 1, End: done}, 4, 5), op(message{Kind: take, Out: 12, End: done}, 4, 5)}},
		"out of order": {"/queues/", false, []porcupine.Operation{
			op(message{Kind: put, In: 1, End: done}, 0, 1), op(message{Kind: put, In: 12, End: done}, 2, 3),
			op(message{Kind: take, Out: 12, End: done}, 4, 5), op(message{Kind: take, Out: 1, End: done}, 6, 7)}},
		"taken twice": {"/queues/", false, []porcupine.Operation{
			op(message{Kind: put, In: 1, End: done}, 0, 1), op(message{Kind: take, Out: 1, End: done}, 2, 3),
			op(message{Kind: take, Out: 1, End: done}, 2, 3)}},
		"lost to a take with an unknown outcome": {"/queues/", true, []porcupine.Operation{
			op(message{Kind: put, In: 1, End: done}, 0, 1), op(message{Kind: take, End: unknown}, 2, never),
			op(message{Kind: put, In: 2, End: done}, 4, 5), op(message{Kind: take, Out: 2, End: done}, 6, 7)}},
		"lost": {"/queues/", false, []porcupine.Operation{
			op(message{Kind: put, In: 1, End: done}, 0, 1),
			op(message{Kind: put, In: 2, End: done}, 4, 5), op(message{Kind: take, Out: 2, End: done}, 6, 7)}},
	} {
		if got := porcupine.CheckOperations(modelOf(test.path), test.ops); got != test.legal {
			t.Errorf("%s: the model says %v; want %v", name, got, test.legal)
		}
	}
}
