package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// book is who got what in a case of the queue's sweep.
type book struct {
	put     []string // known to have been put
	maybe   [][]string
	got     []string // by the victim, for good
	unknown int      // of these one each may be gone
}

// puts books the outcome of a put.
func (b *book) puts(err error, data ...string) error {
	switch {
	case err == nil:
		b.put = append(b.put, data...)
	case errors.Is(err, recipes.ErrUnknownOutcome):
		b.maybe = append(b.maybe, data)
	}
	return err
}

// takes books the outcome of something that takes an element for good.
func (b *book) takes(e recipes.Element, err error) error {
	switch {
	case err == nil:
		b.got = append(b.got, string(e.Data))
	case errors.Is(err, recipes.ErrUnknownOutcome):
		b.unknown++
	}
	return err
}

// audit has another session take what is left, while the victim's still lives,
// and checks that every element went to one place.
func (b *book) audit(st *stage, cfg recipes.QueueConfig) {
	st.t.Helper()
	// Without the limit of deliveries, so that what was counted is taken.
	q := must[recipes.Queue](st.t)(st.other.Queue(sweepPath, recipes.QueueConfig{}))
	if n := must[int](st.t)(q.Len(st.ctx)); cfg.Capacity > 0 && n > cfg.Capacity {
		st.t.Errorf("length %d; the bound is %d", n, cfg.Capacity)
	}
	all := slices.Clone(b.got)
	for must[int](st.t)(q.Len(st.ctx)) > 0 {
		// A claim that the victim gave up is taken back in the background; the
		// wait for it is a watch.
		e, err := q.Take(st.ctx)
		if err != nil {
			st.t.Fatalf("another consumer: %v", err)
		}
		all = append(all, string(e.Data))
	}
	for _, e := range must[[]recipes.Element](st.t)(q.DeadLetters(st.ctx)) {
		all = append(all, string(e.Data))
	}
	for i, e := range all {
		if slices.Index(all, e) != i {
			st.t.Errorf("%q went to two: %q", e, all)
		}
	}
	missing := 0
	for _, e := range b.put {
		if !slices.Contains(all, e) {
			missing++
		}
	}
	if missing > b.unknown {
		st.t.Errorf("%d of %q are missing in %q; %d may be", missing, b.put, all, b.unknown)
	}
	for _, m := range b.maybe {
		if n := len(slices.DeleteFunc(slices.Clone(m), func(e string) bool { return !slices.Contains(all, e) })); n != 0 && n != len(m) {
			st.t.Errorf("of %q, put together, %d were put", m, n)
		}
	}
	for _, e := range all {
		if !slices.Contains(b.put, e) && !slices.ContainsFunc(b.maybe, func(m []string) bool { return slices.Contains(m, e) }) {
			st.t.Errorf("%q came out and was never put, or its put failed", e)
		}
	}
}

// queueSweep is a sweep over a queue that holds a and b.
func queueSweep(name string, cfg recipes.QueueConfig, act func(context.Context, recipes.Queue, *book) error) sweep {
	b := &book{}
	return sweep{
		name: name,
		prepare: func(st *stage) {
			*b = book{put: []string{"a", "b"}}
			q := must[recipes.Queue](st.t)(st.other.Queue(sweepPath, cfg))
			must[[]recipes.ElementID](st.t)(q.PutMany(st.ctx, []byte("a"), []byte("b")))
		},
		act: func(ctx context.Context, st *stage) error {
			return act(ctx, must[recipes.Queue](st.t)(st.victim.Queue(sweepPath, cfg)), b)
		},
		check: func(st *stage, _ error) { b.audit(st, cfg) },
		left: func(path string) bool {
			return slices.Contains([]string{"receipts", "claims", "dead", "bound"}, strings.TrimPrefix(path, sweepPath+"/")) ||
				strings.HasPrefix(path, sweepPath+"/dead/") && cfg.MaxDeliveries > 0 ||
				// A put whose outcome is unknown may happen after the audit.
				strings.HasPrefix(path, sweepPath+"/queue-") && len(b.maybe) > 0
		},
	}
}

// concluded ends a delivery with a context of its own.
func concluded(end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	return end(ctx)
}

func TestFaultSweepQueue(t *testing.T) {
	plain := recipes.QueueConfig{}
	runSweeps(t, "queue", []sweep{
		queueSweep("put", plain, func(ctx context.Context, q recipes.Queue, b *book) error {
			_, err := q.Put(ctx, []byte("c"))
			if err := b.puts(err, "c"); err != nil {
				return err
			}
			_, err = q.PutMany(ctx, []byte("d"), []byte("e"))
			return b.puts(err, "d", "e")
		}),
		queueSweep("put bounded", recipes.QueueConfig{Capacity: 3}, func(ctx context.Context, q recipes.Queue, b *book) error {
			_, err := q.Put(ctx, []byte("c"))
			return b.puts(err, "c")
		}),
		queueSweep("take", plain, func(ctx context.Context, q recipes.Queue, b *book) error {
			for range 2 {
				if err := b.takes(q.Take(ctx)); err != nil {
					return err
				}
			}
			return nil
		}),
		queueSweep("receive and acknowledge", plain, func(ctx context.Context, q recipes.Queue, b *book) error {
			for range 2 {
				d, err := q.Receive(ctx)
				if err != nil {
					return err
				}
				if err := b.takes(d.Element(), concluded(d.Ack)); err != nil {
					return err
				}
			}
			return nil
		}),
		queueSweep("receive and return", plain, func(ctx context.Context, q recipes.Queue, b *book) error {
			d, err := q.Receive(ctx)
			if err != nil {
				return err
			}
			writeErr := settled(d.Write(ctx))
			return errors.Join(writeErr, concluded(d.Return))
		}),
		queueSweep("dead letter", recipes.QueueConfig{MaxDeliveries: 1}, func(ctx context.Context, q recipes.Queue, b *book) error {
			d, err := q.Receive(ctx)
			if err != nil {
				return err
			}
			return concluded(d.Return)
		}),
		queueSweep("peek and count", plain, func(ctx context.Context, q recipes.Queue, b *book) error {
			_, err := q.Peek(ctx)
			_, lenErr := q.Len(ctx)
			_, deadErr := q.DeadLetters(ctx)
			return errors.Join(err, lenErr, deadErr)
		}),
	})
}
