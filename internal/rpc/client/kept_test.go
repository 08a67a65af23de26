package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// An ending is a way in which a session's grant, or its wait for one, ends.
type ending struct {
	name string
	run  func(t *testing.T, s, other recipes.Client) error
}

// endings are those that the table of kinds lacks.
func endings() []ending {
	lock := func(t *testing.T, s recipes.Client) recipes.Lock {
		return must.Get(s.Lock("/lock", recipes.LockConfig{}))(t)
	}
	return []ending{
		{"lock tried", func(t *testing.T, s, _ recipes.Client) error {
			return must.Get(lock(t, s).TryAcquire(ctx(t)))(t).Release(ctx(t))
		}},
		{"shared lock, downgraded", func(t *testing.T, s, _ recipes.Client) error {
			l := must.Get(s.SharedLock("/shared", recipes.SharedLockConfig{}))(t)
			h := must.Get(l.AcquireWrite(ctx(t)))(t)
			return errors.Join(h.Downgrade(ctx(t)), h.Release(ctx(t)))
		}},
		{"element", func(t *testing.T, s, _ recipes.Client) error {
			q := must.Get(s.Queue("/queue", recipes.QueueConfig{}))(t)
			must.Get(q.Put(ctx(t), nil))(t)
			_, err := q.Take(ctx(t))
			return err
		}},
		{"lock that another client has deleted", func(t *testing.T, s, other recipes.Client) error {
			hold := must.Get(lock(t, s).Acquire(ctx(t)))(t)
			if err := must.Get(other.Barrier(hold.Znode()))(t).Remove(ctx(t)); err != nil {
				return err
			}
			if err := hold.Release(ctx(t)); !errors.Is(err, recipes.ErrNotHeld) {
				return fmt.Errorf("released what was deleted: %w", err)
			}
			return nil
		}},
		{"lock whose wait was cancelled", func(t *testing.T, s, other recipes.Client) error {
			hold := must.Get(lock(t, other).Acquire(ctx(t)))(t)
			wait, cancel := context.WithCancel(ctx(t))
			l := must.Get(s.Lock("/lock", recipes.LockConfig{Joined: func(recipes.Place) { cancel() }}))(t)
			if _, err := l.Acquire(wait); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("cancelled: %w", err)
			}
			return hold.Release(ctx(t))
		}},
		{"lock that was contended", func(t *testing.T, s, other recipes.Client) error {
			hold := must.Get(lock(t, other).Acquire(ctx(t)))(t)
			if _, err := lock(t, s).TryAcquire(ctx(t)); !errors.Is(err, recipes.ErrContended) {
				return fmt.Errorf("contended: %w", err)
			}
			return hold.Release(ctx(t))
		}},
	}
}

func TestNothingIsKeptOfAnEndedGrant(t *testing.T) {
	l := newServed(t)
	other := l.open(t, 0)
	for _, e := range endings() {
		t.Run(e.name, func(t *testing.T) {
			s := l.open(t, 0)
			must.Do(t, e.run(t, s, other))
			nothingIsKept(t, s)
		})
	}
}

// Any amount of data that fits into ZooKeeper can be transferred: gRPC by default refuses
// more than 4 MiB.
func TestASnapshotOfManyMegabytesCrosses(t *testing.T) {
	c := must.Get(newServed(t).open(t, 0).Configuration("/c"))(t)
	value := bytes.Repeat([]byte("x"), 900<<10)
	const keys = 6
	for i := range keys {
		must.Get(c.Set(ctx(t), fmt.Sprint("k", i), value, recipes.NoRevision))(t)
	}
	entries := must.Get(c.Snapshot(ctx(t)))(t)
	n := 0
	for _, e := range entries {
		n += len(e.Value)
	}
	if n != keys*len(value) {
		t.Errorf("%d bytes in %d entries; %d were set", n, len(entries), keys*len(value))
	}
}
