package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// An ending is a way in which a session's grant ends, or its wait for one.
type ending struct {
	name string
	run  func(t *testing.T, s, other recipes.Session) error
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

// endings are those that the table of kinds lacks.
func endings() []ending {
	lock := func(t *testing.T, s recipes.Session) recipes.Lock {
		return must[recipes.Lock](t)(s.Lock("/lock", recipes.LockConfig{}))
	}
	return []ending{
		{"lock tried", func(t *testing.T, s, _ recipes.Session) error {
			return must[recipes.Hold](t)(lock(t, s).TryAcquire(ctx(t))).Release(ctx(t))
		}},
		{"shared lock, downgraded", func(t *testing.T, s, _ recipes.Session) error {
			l := must[recipes.SharedLock](t)(s.SharedLock("/shared", recipes.SharedLockConfig{}))
			h := must[recipes.SharedHold](t)(l.AcquireWrite(ctx(t)))
			return errors.Join(h.Downgrade(ctx(t)), h.Release(ctx(t)))
		}},
		{"element", func(t *testing.T, s, _ recipes.Session) error {
			q := must[recipes.Queue](t)(s.Queue("/queue", recipes.QueueConfig{}))
			must[recipes.ElementID](t)(q.Put(ctx(t), nil))
			_, err := q.Take(ctx(t))
			return err
		}},
		{"lock that another client has deleted", func(t *testing.T, s, other recipes.Session) error {
			hold := must[recipes.Hold](t)(lock(t, s).Acquire(ctx(t)))
			if err := must[recipes.Barrier](t)(other.Barrier(hold.Znode())).Remove(ctx(t)); err != nil {
				return err
			}
			if err := hold.Release(ctx(t)); !errors.Is(err, recipes.ErrNotHeld) {
				return fmt.Errorf("released what was deleted: %w", err)
			}
			return nil
		}},
		{"lock whose wait was cancelled", func(t *testing.T, s, other recipes.Session) error {
			hold := must[recipes.Hold](t)(lock(t, other).Acquire(ctx(t)))
			wait, cancel := context.WithCancel(ctx(t))
			l := must[recipes.Lock](t)(s.Lock("/lock", recipes.LockConfig{Joined: func(recipes.Place) { cancel() }}))
			if _, err := l.Acquire(wait); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("cancelled: %w", err)
			}
			return hold.Release(ctx(t))
		}},
		{"lock that was contended", func(t *testing.T, s, other recipes.Session) error {
			hold := must[recipes.Hold](t)(lock(t, other).Acquire(ctx(t)))
			if _, err := lock(t, s).TryAcquire(ctx(t)); !errors.Is(err, recipes.ErrContended) {
				return fmt.Errorf("contended: %w", err)
			}
			return hold.Release(ctx(t))
		}},
	}
}

func TestNothingIsKeptOfWhatHasEnded(t *testing.T) {
	l := newServed(t)
	other := l.open(t, 0)
	for _, e := range endings() {
		t.Run(e.name, func(t *testing.T) {
			s := l.open(t, 0)
			if err := e.run(t, s, other); err != nil {
				t.Fatal(err)
			}
			nothingIsKept(t, s)
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
