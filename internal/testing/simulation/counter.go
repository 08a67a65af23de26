package simulation

import (
	"context"
	"errors"
	"sync"

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
