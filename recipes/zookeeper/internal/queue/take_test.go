package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// noted has the methods by which the plugin takes elements.
type noted interface {
	TakeNoted(ctx context.Context, most int, id string, begins func(elements string)) (taken []recipes.Element, release func(), err error)
	Taken(ctx context.Context, id string) ([]recipes.Element, error)
}

// take takes a batch under an id, and checks the names that the plugin could report before.
func take(t *testing.T, q recipes.Consumer, most int, id, begins string) (release func()) {
	t.Helper()
	var begun []string
	taken, release, err := q.(noted).TakeNoted(t.Context(), most, id, func(elements string) { begun = append(begun, elements) })
	if err != nil || len(taken) != most || !slices.Equal(begun, []string{begins}) {
		t.Errorf("took %d elements, %v, and named %q; want %q", len(taken), err, begun, begins)
	}
	return release
}

// The process that resumes a session gets what each take has taken, until it drops the rest. The
// receipt of a take whose elements have arrived is used again.
func TestTheNextProcessLearnsWhatWasTaken(t *testing.T) {
	for _, priority := range []bool{false, true} {
		srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
		at := func(s recipes.Client) recipes.Consumer {
			if priority {
				return must.Get(s.PriorityQueue("/q", recipes.QueueConfig{}))(t)
			}
			return zktest.QueueOf(t, s, "/q", recipes.QueueConfig{})
		}
		first := zktest.Open(t, srv)
		q := at(first)
		prefix := "queue-000000000"
		var data [][]byte
		for i := range 8 {
			data = append(data, fmt.Append(nil, i))
		}
		if p, ok := q.(recipes.PriorityQueue); ok && priority {
			prefix = "queue-07-000000000"
			must.Get(p.PutMany(ctx, 7, data...))(t)
		} else {
			must.Get(q.(recipes.Queue).PutMany(ctx, data...))(t)
		}
		name := func(n int) string { return fmt.Sprint(prefix, n+1) }
		take(t, q, 1, "arrived", name(0))()
		take(t, q, 2, "two", name(1)+" and "+name(2))
		take(t, q, 3, "three", fmt.Sprintf("3 elements from %s to %s", name(3), name(5)))
		take(t, q, 1, "", name(6))
		if n := len(must.Get(first.Children(ctx, "/q/receipts"))(t)); n != 3 {
			t.Errorf("%d receipts; two are kept, and one is idle", n)
		}
		next := zktest.Move(t, srv.Addr(), first)
		for range 2 {
			for id, want := range map[string]string{"arrived": "", "two": "1 2", "three": "3 4 5", "": "", "none": ""} {
				taken, err := at(next).(noted).Taken(ctx, id)
				var got []string
				for _, e := range taken {
					got = append(got, string(e.Data))
					if e.Put.IsZero() || (e.Priority == 7) != priority || e.ID == "" {
						t.Errorf("it is incomplete: %+v", e)
					}
				}
				if err != nil || strings.Join(got, " ") != want {
					t.Errorf("%q has taken %q, %v; want %q", id, got, err, want)
				}
			}
		}
		must.Do(t, next.(zktest.Movable).DropRest(ctx))
		if taken, err := at(next).(noted).Taken(ctx, "two"); len(taken) > 0 || err != nil {
			t.Errorf("after DropRest: %v, %v", taken, err)
		}
		if e := must.Get(at(next).Take(ctx))(t); string(e.Data) != "7" {
			t.Errorf("then it took %q", e.Data)
		}
	}
}

// A note of a newer plugin is not mistaken for a missing one.
func TestANoteThatCannotBeReadIsAnError(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	first := zktest.Open(t, srv)
	q := zktest.QueueOf(t, first, "/q", recipes.QueueConfig{})
	must.Get(q.PutMany(ctx, nil, nil))(t)
	take(t, q, 1, "id", "queue-0000000001")
	var receipt string
	for _, n := range srv.Tree() {
		if strings.Contains(n.Path, "receipt-") && len(n.Data) > 0 {
			receipt = n.Path
		}
	}
	hold := must.Get(must.Get(first.Lock("/l", recipes.LockConfig{}))(t).Acquire(ctx))(t)
	must.Do(t, hold.Write(ctx, recipes.Set(receipt, []byte{0, 0, 0, 2, 0, 0, 0, 0}, recipes.AnyVersion)))
	if _, err := q.(noted).Taken(ctx, "id"); !errors.Is(err, recipes.ErrUnsupported) {
		t.Error(err)
	}
}

// The memory for a batch is bounded, although a deletion does not contain the element: elements of
// a session with larger packets are taken in several batches.
func TestTheDataOfABatchIsBounded(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	cfg := recipes.SessionConfig{Servers: []string{srv.Addr()}, MaxPacket: 64 << 10}
	s := must.Get(zookeeper.Open(ctx, cfg))(t)
	t.Cleanup(func() { s.Close(context.Background()) })
	q := zktest.QueueOf(t, s, "/q", recipes.QueueConfig{})
	const n = 100
	for range n {
		must.Get(q.Put(ctx, make([]byte, 5000)))(t)
	}
	for taken := 0; taken < n; {
		got := len(must.Get(q.TakeMany(ctx, n))(t))
		if taken += got; got == 0 || got*5000 > cfg.MaxPacket {
			t.Errorf("%d elements at once", got)
		}
	}
}

// A batch is taken while it is fresh. A consumer that is far from the servers and reads on would
// lose the elements that it has found to nearer consumers, again and again.
func TestABatchDoesNotAgeWhileItIsFilled(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	far, near := zktest.QueueOf(t, zktest.Open(t, srv), "/q", recipes.QueueConfig{}), zktest.QueueOf(t, zktest.Open(t, srv), "/q", recipes.QueueConfig{})
	must.Get(far.PutMany(ctx, []byte("0"), []byte("1"), []byte("2"), []byte("3"), []byte("4"), []byte("5"), []byte("6")))(t)
	must.Get(far.Take(ctx))(t) // lists all
	must.Get(near.TakeMany(ctx, 2))(t)
	for _, want := range []string{"3", "4 5 6"} {
		got := ""
		for _, e := range must.Get(far.TakeMany(ctx, 3))(t) {
			got += " " + string(e.Data)
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("took %s; want %s", got, want)
		}
	}
}
