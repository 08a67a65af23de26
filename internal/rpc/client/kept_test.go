package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// An ending is a way in which a session's grant ends, or its wait for one.
type ending struct {
	name string
	run  func(t *testing.T, s, other recipes.Client) error
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// ends makes an ending of a recipe's methods.
func ends[R, G any](name string, of func(recipes.Client) (R, error), get func(R, context.Context) (G, error), end func(G, context.Context) error) ending {
	return ending{name, func(t *testing.T, s, _ recipes.Client) error {
		return end(must[G](t)(get(must[R](t)(of(s)), ctx(t))), ctx(t))
	}}
}

func endings() []ending {
	locked := func(s recipes.Client) (recipes.Lock, error) { return s.Lock("/lock", recipes.LockConfig{}) }
	shared := func(s recipes.Client) (recipes.SharedLock, error) {
		return s.SharedLock("/shared", recipes.SharedLockConfig{})
	}
	priority := func(s recipes.Client) (recipes.PriorityLock, error) {
		return s.PriorityLock("/priority", recipes.PriorityLockConfig{})
	}
	queue := func(s recipes.Client) (recipes.Queue, error) { return s.Queue("/queue", recipes.QueueConfig{}) }
	receive := func(q recipes.Queue, ctx context.Context) (recipes.Delivery, error) {
		if _, err := q.Put(ctx, nil); err != nil {
			return nil, err
		}
		return q.Receive(ctx)
	}
	return []ending{
		ends("lock", locked, recipes.Lock.Acquire, recipes.Hold.Release),
		ends("lock tried", locked, recipes.Lock.TryAcquire, recipes.Hold.Release),
		ends("election", func(s recipes.Client) (recipes.Election, error) {
			return s.Election("/election", recipes.ElectionConfig{})
		}, func(e recipes.Election, ctx context.Context) (recipes.Leadership, error) { return e.Campaign(ctx, nil) }, recipes.Leadership.Resign),
		ends("semaphore", func(s recipes.Client) (recipes.Semaphore, error) {
			return s.Semaphore("/semaphore", recipes.SemaphoreConfig{Permits: 2})
		}, recipes.Semaphore.Acquire, recipes.Hold.Release),
		ends("shared lock", shared, recipes.SharedLock.AcquireRead, recipes.SharedHold.Release),
		ends("shared lock, downgraded", shared, recipes.SharedLock.AcquireWrite, func(h recipes.SharedHold, ctx context.Context) error {
			return errors.Join(h.Downgrade(ctx), h.Release(ctx))
		}),
		ends("priority lock", priority, recipes.PriorityLock.AcquireWrite, recipes.PriorityHold.Release),
		ends("membership", func(s recipes.Client) (recipes.Group, error) { return s.Group("/group", recipes.GroupConfig{}) },
			func(g recipes.Group, ctx context.Context) (recipes.Membership, error) { return g.Join(ctx, nil) }, recipes.Membership.Leave),
		ends("name", func(s recipes.Client) (recipes.Names, error) { return s.Names("/names") },
			func(n recipes.Names, ctx context.Context) (recipes.Registration, error) {
				return n.Register(ctx, "name", nil)
			}, recipes.Registration.Unregister),
		ends("delivery, acknowledged", queue, receive, recipes.Delivery.Ack),
		ends("delivery, returned", queue, receive, recipes.Delivery.Return),
		ends("element", queue, func(q recipes.Queue, ctx context.Context) (recipes.Element, error) {
			if _, err := q.Put(ctx, nil); err != nil {
				return recipes.Element{}, err
			}
			return q.Take(ctx)
		}, func(recipes.Element, context.Context) error { return nil }),
		{"lock that another client has deleted", func(t *testing.T, s, other recipes.Client) error {
			hold := must[recipes.Hold](t)(must[recipes.Lock](t)(locked(s)).Acquire(ctx(t)))
			if err := must[recipes.Barrier](t)(other.Barrier(hold.Znode())).Remove(ctx(t)); err != nil {
				return err
			}
			if err := hold.Release(ctx(t)); !errors.Is(err, recipes.ErrNotHeld) {
				return fmt.Errorf("released what was deleted: %w", err)
			}
			return nil
		}},
		{"lock whose wait was cancelled", func(t *testing.T, s, other recipes.Client) error {
			hold := must[recipes.Hold](t)(must[recipes.Lock](t)(locked(other)).Acquire(ctx(t)))
			wait, cancel := context.WithCancel(ctx(t))
			l := must[recipes.Lock](t)(s.Lock("/lock", recipes.LockConfig{Joined: func(recipes.Place) { cancel() }}))
			if _, err := l.Acquire(wait); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("cancelled: %w", err)
			}
			return hold.Release(ctx(t))
		}},
		{"lock that was contended", func(t *testing.T, s, other recipes.Client) error {
			hold := must[recipes.Hold](t)(must[recipes.Lock](t)(locked(other)).Acquire(ctx(t)))
			if _, err := must[recipes.Lock](t)(locked(s)).TryAcquire(ctx(t)); !errors.Is(err, recipes.ErrContended) {
				return fmt.Errorf("contended: %w", err)
			}
			return hold.Release(ctx(t))
		}},
	}
}

// A session lives for months and takes turns all the time. When a grant has ended, its
// host remembers nothing of it.
func TestNothingIsKeptOfWhatHasEnded(t *testing.T) {
	l := newServed(t)
	other := l.open(t, 0)
	for _, e := range endings() {
		t.Run(e.name, func(t *testing.T) {
			s := l.open(t, 0)
			if err := e.run(t, s, other); err != nil {
				t.Fatal(err)
			}
			if grants, owned, joins := client.Kept(s); grants+owned+joins != 0 {
				t.Errorf("%d grants, %d that the plugin knows, and %d contenders are kept", grants, owned, joins)
			}
			if client.Holding(s) {
				t.Error("the clock counts as for one that holds something")
			}
		})
	}
}

// Elements of the queues of other libraries cross as those of ours do.
func TestElementsOfADialectCross(t *testing.T) {
	l := newServed(t)
	for _, dialect := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		q := must[recipes.Queue](t)(l.open(t, 0).Queue("/"+string(dialect), recipes.QueueConfig{Dialect: dialect}))
		id := must[recipes.ElementID](t)(q.Put(ctx(t), []byte("data")))
		if e := must[recipes.Element](t)(q.Take(ctx(t))); e.ID != id || string(e.Data) != "data" {
			t.Errorf("%s: put %s, and took %+v", dialect, id, e)
		}
	}
}

// What ZooKeeper has room for crosses whatever it adds up to: gRPC by itself refuses more
// than 4 MiB.
func TestASnapshotOfManyMegabytesCrosses(t *testing.T) {
	c := must[recipes.Configuration](t)(newServed(t).open(t, 0).Configuration("/c"))
	value := bytes.Repeat([]byte("x"), 900<<10)
	const keys = 6
	for i := range keys {
		must[recipes.Revision](t)(c.Set(ctx(t), fmt.Sprint("k", i), value, recipes.NoRevision))
	}
	entries := must[[]recipes.Entry](t)(c.Snapshot(ctx(t)))
	n := 0
	for _, e := range entries {
		n += len(e.Value)
	}
	if n != keys*len(value) {
		t.Errorf("%d bytes in %d entries; %d were set", n, len(entries), keys*len(value))
	}
}
