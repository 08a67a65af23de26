package uptime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// each is the number of sessions of a kind.
	each = 20
	// comers are sessions that are closed after each turn.
	comers = each
	// In a turn a session watches this many keys that are never set.
	unset = 5
	// sessions is how many sessions are open.
	sessions = 10 * each
)

// work is what the sessions do.
type work struct {
	*testing.T
	open  recipes.Opener
	cfg   recipes.SessionConfig
	pause time.Duration // the mean time between two turns of a session
	stop  chan struct{}

	all                    sync.WaitGroup
	opened, turns, unknown atomic.Int64
}

// turns is what the i-th session of a kind does in each turn.
type turns func(s recipes.Client, i int) (turn func() error)

func (w *work) start() {
	for _, kind := range []turns{w.holds, w.contends, w.contends, w.joins, w.puts, w.takes, w.receives, w.watches, w.sets} {
		for i := range each {
			w.all.Go(func() { w.report(w.inOneSession(kind, i)) })
		}
	}
	for i := range comers {
		w.all.Go(func() { w.report(w.comesAndGoes(i)) })
	}
}

// end returns when all sessions are closed.
func (w *work) end() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	w.all.Wait()
}

func (w *work) report(err error) {
	if err != nil {
		w.Errorf("a session: %v", err)
	}
}

// inOneSession opens a session and closes it at the end.
func (w *work) inOneSession(kind turns, i int) error {
	s, err := w.open(w.Context(), w.cfg)
	if err != nil {
		return err
	}
	w.opened.Add(1)
	turn := kind(s, i)
	for !w.pauses(w.pause) {
		if err := w.known(turn()); err != nil {
			return errors.Join(err, s.Close(w.Context()))
		}
		w.turns.Add(1)
	}
	return w.known(s.Close(w.Context()))
}

// comesAndGoes acquires and releases a lock in a session of its own, again and again.
func (w *work) comesAndGoes(i int) error {
	for !w.pauses(w.pause) {
		s, err := w.open(w.Context(), w.cfg)
		if err != nil {
			return err
		}
		w.opened.Add(1)
		turn := w.contends(s, i)
		if err := errors.Join(w.known(turn()), w.known(s.Close(w.Context()))); err != nil {
			return err
		}
		w.turns.Add(1)
	}
	return nil
}

// pauses waits for about d. It reports whether the work has ended.
func (w *work) pauses(d time.Duration) (ended bool) {
	select {
	case <-w.stop:
		return true
	case <-time.After(d/2 + rand.N(d)):
		return false
	}
}

// known counts unknown outcomes, and returns any other error. An upgrade does not wait long for a
// change. A Take whose context ends does not wait long either.
func (w *work) known(err error) error {
	if errors.Is(err, recipes.ErrUnknownOutcome) && !errors.Is(err, recipes.ErrSessionLost) {
		w.unknown.Add(1)
		return nil
	}
	return err
}

// unlessLate returns err, unless a wait has ended without a result.
func unlessLate(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		return nil
	}
	return err
}

// holds acquires a lock in the first turn, and writes under it in the others.
func (w *work) holds(s recipes.Client, i int) func() error {
	key, c := fmt.Sprintf("guarded-%d", i), w.configuration(s)
	var h recipes.Hold
	return func() error {
		if h != nil {
			op, err := c.Key(recipes.Set(key, nil, recipes.AnyVersion))
			if err != nil {
				return err
			}
			return h.Write(w.Context(), op)
		}
		l, err := s.Lock(fmt.Sprintf("/held-%d", i), recipes.LockConfig{})
		if err != nil {
			return err
		}
		if _, err := c.Set(w.Context(), key, nil, recipes.AnyRevision); err != nil {
			return err
		}
		if h, err = l.Acquire(w.Context()); err == nil {
			h.Done() // watches it
		}
		return err
	}
}

// contends contends for a lock with five other sessions. It gives up in each third turn.
func (w *work) contends(s recipes.Client, i int) func() error {
	l, err := s.Lock(fmt.Sprintf("/contended-%d", i%10), recipes.LockConfig{})
	turn := 0
	return func() error {
		if err != nil {
			return err
		}
		ctx, cancel := w.Context(), context.CancelFunc(func() {})
		if turn++; turn%3 == 0 {
			ctx, cancel = context.WithTimeout(ctx, w.pause/2)
		}
		defer cancel()
		h, err := l.Acquire(ctx)
		if err != nil {
			return unlessLate(err)
		}
		h.Done() // watches it
		w.pauses(w.pause / 8)
		return h.Release(w.Context())
	}
}

// joins joins a group, updates its data and leaves, in turn.
func (w *work) joins(s recipes.Client, i int) func() error {
	g, err := s.Group("/group", recipes.GroupConfig{})
	var m recipes.Membership
	turn := 0
	return func() error {
		turn++
		switch {
		case err != nil:
		case m == nil:
			m, err = g.Join(w.Context(), nil)
		case turn%4 != 0:
			return m.Update(w.Context(), nil)
		default:
			left := m
			m = nil
			return left.Leave(w.Context())
		}
		return err
	}
}

func (w *work) queue(s recipes.Client) recipes.Queue {
	q, err := s.Queue("/queue", recipes.QueueConfig{})
	w.report(err)
	return q
}

// puts puts an element for a taker and one for a receiver, unless they are behind.
func (w *work) puts(s recipes.Client, _ int) func() error {
	q := w.queue(s)
	return func() error {
		n, err := q.Len(w.Context())
		if err != nil || n > each {
			return err
		}
		_, err = q.PutMany(w.Context(), []byte("one"), []byte("two"))
		return err
	}
}

// takes takes an element.
func (w *work) takes(s recipes.Client, _ int) func() error {
	q := w.queue(s)
	return func() error {
		ctx, cancel := context.WithTimeout(w.Context(), w.pause)
		defer cancel()
		_, err := q.Take(ctx)
		return unlessLate(err)
	}
}

// receives receives an element, and acknowledges or returns it.
func (w *work) receives(s recipes.Client, _ int) func() error {
	q := w.queue(s)
	return func() error {
		ctx, cancel := context.WithTimeout(w.Context(), w.pause)
		defer cancel()
		d, err := q.Receive(ctx)
		switch {
		case err != nil:
			return unlessLate(err)
		case rand.N(8) == 0:
			return d.Return(w.Context())
		}
		return d.Ack(w.Context())
	}
}

func (w *work) configuration(s recipes.Client) recipes.Configuration {
	c, err := s.Configuration("/configuration")
	w.report(err)
	return c
}

// sets lists contenders, and sets a key or deletes it.
func (w *work) sets(s recipes.Client, i int) func() error {
	key, c := fmt.Sprintf("key-%d", i), w.configuration(s)
	return func() error {
		if _, err := s.Contenders(w.Context(), fmt.Sprintf("/contended-%d", i%10)); err != nil {
			return err
		}
		if rand.N(8) > 0 {
			_, err := c.Set(w.Context(), key, []byte("value"), recipes.AnyRevision)
			return err
		}
		if err := c.Delete(w.Context(), key, recipes.AnyRevision); !errors.Is(err, recipes.ErrNoNode) {
			return err
		}
		return nil
	}
}

// watches watches the group, a key that other sessions set, and keys that are never set. In the
// next turn it cancels the watches. Watches of keys that are never set must be removed, because
// they never fire.
func (w *work) watches(s recipes.Client, i int) func() error {
	c := w.configuration(s)
	g, err := s.Group("/group", recipes.GroupConfig{})
	cancel := func() {}
	turn := 0
	return func() error {
		if err != nil {
			return err
		}
		cancel()
		var ctx context.Context
		ctx, cancel = context.WithCancel(w.Context()) // the end of the session also ends the watch
		members, err := g.Watch(ctx)
		if err != nil {
			return err
		}
		w.all.Go(func() { drain(members) })
		turn++
		keys := []string{fmt.Sprintf("key-%d", i)}
		for n := range unset {
			keys = append(keys, fmt.Sprintf("unset-%d-%d-%d", i, turn, n))
		}
		for _, key := range keys {
			values, err := c.Watch(ctx, key)
			if err != nil {
				return err
			}
			w.all.Go(func() { drain(values) })
		}
		return nil
	}
}

func drain[T any](values <-chan T) {
	for range values {
	}
}
