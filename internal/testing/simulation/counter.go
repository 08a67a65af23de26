package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// tally counts the additions to a counter.
type tally struct {
	world *World

	mu             sync.Mutex
	added, unknown int64
	sums           map[int64]string // client that received the sum
}

func counters(w *World) game {
	t := &tally{world: w, sums: make(map[int64]string)}
	return game{t.turn, t.check}
}

func (t *tally) turn(ctx context.Context, c *client, s recipes.Client) error {
	n, err := s.Counter("/counter", recipes.CounterConfig{})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	sum, err := n.Add(wait, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case c.isDead(), errors.Is(err, recipes.ErrUnknownOutcome): // a dead process does not report its result
		t.unknown++
	case err == nil:
		t.added++
		if other, taken := t.sums[sum]; taken {
			t.world.fail(c.name, "received the sum %d, as %s did", sum, other)
		}
		t.sums[sum] = c.name
		c.note("counted to %d", sum)
	}
	return err
}

// check compares the counter with the additions.
func (t *tally) check(ctx context.Context, operator recipes.Client) {
	n, err := operator.Counter("/counter", recipes.CounterConfig{})
	if err != nil {
		t.world.fail("operator", "%v", err)
		return
	}
	sum, err := n.Get(ctx)
	if err != nil || sum < t.added || sum > t.added+t.unknown {
		t.world.fail("counter", "is %d (%v); %d were added, and %d more may have been", sum, err, t.added, t.unknown)
	}
}

// latchRounds are the latches of a run. The clients count them down one after the other.
type latchRounds struct {
	world *World
	count int64

	mu     sync.Mutex
	rounds []*latchRound
}

// latchRound records the calls on one latch.
type latchRound struct {
	path           string
	known, unknown int64
	remaining      map[int64]string // client that received the count
	open           bool             // a client has received 0
}

func latches(w *World) game {
	l := &latchRounds{world: w, count: int64(1 + w.chance.below(6))}
	l.next()
	return game{l.turn, l.check}
}

func (l *latchRounds) next() {
	l.rounds = append(l.rounds, &latchRound{path: fmt.Sprintf("/latches/%d", len(l.rounds)), remaining: make(map[int64]string)})
}

func (l *latchRounds) current() *latchRound {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rounds[len(l.rounds)-1]
}

// turn counts the current latch down, or waits for it. The first client never waits, so that the
// latch opens.
func (l *latchRounds) turn(ctx context.Context, c *client, s recipes.Client) error {
	r := l.current()
	latch, err := s.Latch(r.path, recipes.LatchConfig{Count: l.count})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	if c.number > 1 && c.chance.chance(30) {
		err := latch.Wait(wait)
		if err == nil {
			l.passed(c, r)
		}
		return err
	}
	remains, err := latch.CountDown(wait)
	l.counted(c, r, remains, err)
	if err == nil {
		err = c.step(ctx, c.chance.about(50*time.Millisecond))
	}
	return err
}

func (l *latchRounds) counted(c *client, r *latchRound, remains int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case c.isDead(), errors.Is(err, recipes.ErrUnknownOutcome):
		r.unknown++
		return
	case err != nil:
		return
	}
	c.note("counted %s down to %d", r.path, remains)
	if remains == 0 && r.open {
		return // the latch was open before
	}
	r.known++
	if other := r.remaining[remains]; other != "" {
		l.world.fail(c.name, "received the count %d of %s, as %s did", remains, r.path, other)
	}
	r.remaining[remains] = c.name
	if remains == 0 {
		l.opened(r)
	}
}

// opened begins the next round.
func (l *latchRounds) opened(r *latchRound) {
	r.open = true
	if r == l.rounds[len(l.rounds)-1] {
		l.next()
	}
}

// passed checks that a latch did not open before enough calls were made.
func (l *latchRounds) passed(c *client, r *latchRound) {
	c.note("passed %s", r.path)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.isDead() {
		// Pending calls may have counted.
		if most := r.known + r.unknown + int64(len(l.world.clients)); most < l.count {
			l.world.fail(c.name, "passed %s after at most %d of %d counts", r.path, most, l.count)
		}
	}
}

// check compares each latch's count with the calls.
func (l *latchRounds) check(ctx context.Context, operator recipes.Client) {
	for _, r := range l.rounds {
		latch, err := operator.Latch(r.path, recipes.LatchConfig{Count: l.count})
		if err != nil {
			l.world.fail("operator", "%v", err)
			continue
		}
		remains, err := latch.Count(ctx)
		least, most := max(0, l.count-r.known-r.unknown), max(0, l.count-r.known)
		if err != nil || remains < least || remains > most {
			l.world.fail("latch", "the count of %s is %d (%v); want from %d to %d", r.path, remains, err, least, most)
		}
	}
}
