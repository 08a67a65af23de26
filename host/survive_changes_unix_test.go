//go:build unix

package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestAChangeWhosePluginDiesIsNotRepeated: the change was made at most once. The call returns
// ErrUnknownOutcome without ErrSessionLost, because the session continues.
func TestAChangeWhosePluginDiesIsNotRepeated(t *testing.T) {
	t.Parallel()
	v := survive(t)
	for name, c := range map[string]struct {
		path   string
		change func(context.Context, recipes.Client) error
		made   func(context.Context, recipes.Client) (int, error) // how often
	}{
		"Put": {"/q", func(ctx context.Context, s recipes.Client) error {
			q, _ := s.Queue("/q", recipes.QueueConfig{})
			_, err := q.Put(ctx, []byte("one"))
			return err
		}, func(ctx context.Context, s recipes.Client) (int, error) {
			q, _ := s.Queue("/q", recipes.QueueConfig{})
			return q.Len(ctx)
		}},
		"PutMany": {"/pq", func(ctx context.Context, s recipes.Client) error {
			q, _ := s.PriorityQueue("/pq", recipes.QueueConfig{})
			_, err := q.PutMany(ctx, 1, []byte("one"))
			return err
		}, func(ctx context.Context, s recipes.Client) (int, error) {
			q, _ := s.PriorityQueue("/pq", recipes.QueueConfig{})
			return q.Len(ctx)
		}},
		"Add": {"/n", func(ctx context.Context, s recipes.Client) error {
			n, _ := s.Counter("/n", recipes.CounterConfig{})
			_, err := n.Add(ctx, 1)
			return err
		}, func(ctx context.Context, s recipes.Client) (int, error) {
			c, _ := s.Counter("/n", recipes.CounterConfig{})
			n, err := c.Get(ctx)
			return int(n), err
		}},
		"CountDown": {"/latch", func(ctx context.Context, s recipes.Client) error {
			l, _ := s.Latch("/latch", recipes.LatchConfig{Count: 9})
			_, err := l.CountDown(ctx)
			return err
		}, func(ctx context.Context, s recipes.Client) (int, error) {
			l, _ := s.Latch("/latch", recipes.LatchConfig{Count: 9})
			n, err := l.Count(ctx)
			return 9 - int(n), err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for round := 1; round <= 2; round++ { // in the second one the path exists
				before, err := c.made(ctx(t), v.rival)
				if err != nil && !errors.Is(err, recipes.ErrNoNode) {
					t.Fatal(err)
				}
				reached := v.unanswered(func(r zkserver.Request) bool { return changes(r) && strings.HasPrefix(r.Path, c.path) })
				done := begin(func() error { return c.change(ctx(t), v.session) })
				closes(t, "the point", reached)
				v.kill()
				v.server.SetFault(nil)
				if err := <-done; !errors.Is(err, recipes.ErrUnknownOutcome) || errors.Is(err, recipes.ErrSessionLost) {
					t.Errorf("round %d: %v", round, err)
				}
				after, err := c.made(ctx(t), v.rival)
				if err != nil && !errors.Is(err, recipes.ErrNoNode) || after-before > 1 || after < before {
					t.Errorf("round %d: made %d times, then %d times: %v", round, before, after, err)
				}
				must.Report(t, c.change(ctx(t), v.session))
				if again, err := c.made(ctx(t), v.rival); err != nil || again != after+1 {
					t.Errorf("round %d: made %d times after another call, %d before: %v", round, again, after, err)
				}
			}
		})
	}
}
