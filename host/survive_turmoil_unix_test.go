//go:build unix

package host_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// turmoil is a few locks with many contenders, and their counts.
type turmoil struct {
	*surviving
	end     chan struct{}
	holders [3]atomic.Int32
	tokens  [3]atomic.Int64 // the latest

	granted, canceled, unknown atomic.Int64
}

// TestTurmoil kills plugins at any time, even while they resume sessions. No two contenders
// hold a lock at a time, tokens grow, no hold is lost, and nothing is left.
func TestTurmoil(t *testing.T) {
	t.Parallel()
	u := &turmoil{surviving: survive(t), end: make(chan struct{})}
	seed := rand.Uint64()
	var all sync.WaitGroup
	for i := range uint64(10) {
		s := u.session
		if i < 2 {
			s = u.rival
		}
		all.Go(func() {
			for r := rand.New(rand.NewPCG(seed, i)); !u.ended(); {
				u.turn(s, r)
			}
		})
	}
	r, kills, last := rand.New(rand.NewPCG(seed, 99)), 0, 0
	for !t.Failed() && (kills < 10 || u.granted.Load() < 50) {
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		// One plugin of two resumes the session. Otherwise it could expire on a busy machine.
		if kills%2 == 0 && u.session.State() == recipes.Suspended {
			continue
		}
		if p := u.supervisor.Plugin(); p != nil && p.PID() != last && syscall.Kill(p.PID(), syscall.SIGKILL) == nil {
			kills, last = kills+1, p.PID()
		}
	}
	close(u.end)
	all.Wait()
	must.Report(t, u.session.Err())
	for i := range u.holders { // znodes of cancelled calls are deleted in the background
		eventually(t, func() string {
			left := ephemerals(u.server, turmoilPath(i))
			return unless(len(left) == 0, "left: %q", left)
		})
	}
	t.Logf("seed %d: %d kills, %d granted, %d canceled, %d writes unknown", seed, kills, u.granted.Load(), u.canceled.Load(), u.unknown.Load())
}

func turmoilPath(i int) string { return fmt.Sprintf("/turmoil-%d", i) }

func (u *turmoil) ended() bool {
	select {
	case <-u.end:
		return true
	default:
		return false
	}
}

// turn acquires a lock, perhaps with a deadline, writes and releases it.
func (u *turmoil) turn(s recipes.Recipes, r *rand.Rand) {
	i := r.IntN(len(u.holders))
	cfg := recipes.LockConfig{Strategy: []recipes.Strategy{recipes.Handoff, recipes.Predecessor}[r.IntN(2)]}
	if r.IntN(2) == 0 {
		cfg.Joined = func(recipes.Place) {}
	}
	l, err := s.Lock(turmoilPath(i), cfg)
	if err != nil {
		u.Error(err)
		return
	}
	patient := patience
	if r.IntN(3) == 0 {
		patient = time.Duration(r.IntN(30)) * time.Millisecond
	}
	c, cancel := context.WithTimeout(ctx(u), patient)
	defer cancel()
	h, err := l.Acquire(c)
	switch {
	case patient < patience && errors.Is(err, context.DeadlineExceeded):
		u.canceled.Add(1)
		return
	case err != nil:
		u.Errorf("acquire: %v", err)
		return
	}
	u.granted.Add(1)
	if u.holders[i].Add(1) != 1 {
		u.Errorf("two hold %s", turmoilPath(i))
	}
	if before := u.tokens[i].Swap(int64(h.Token())); before >= int64(h.Token()) {
		u.Errorf("token %d after %d", h.Token(), before)
	}
	if r.IntN(2) == 0 {
		h.Done() // the plugin then watches for its loss
	}
	switch err := h.Write(ctx(u)); {
	case errors.Is(err, recipes.ErrUnknownOutcome):
		u.unknown.Add(1)
	case err != nil:
		u.Errorf("write: %v", err)
	}
	if err := h.Err(); err != nil {
		u.Errorf("lost: %v", err)
	}
	u.holders[i].Add(-1)
	if err := h.Release(ctx(u)); err != nil {
		u.Errorf("release: %v", err)
	}
	select {
	case <-h.Done():
	case <-ctx(u).Done():
		u.Error("Done is open after the release")
	}
}
