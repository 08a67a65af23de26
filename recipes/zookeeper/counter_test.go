package zookeeper_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func counterAt(t *testing.T, s recipes.Recipes, path string) recipes.Counter {
	t.Helper()
	return must.Get(s.Counter(path, recipes.CounterConfig{}))(t)
}

func latchAt(t *testing.T, s recipes.Recipes, path string, count int64) recipes.Latch {
	t.Helper()
	return must.Get(s.Latch(path, recipes.LatchConfig{Count: count}))(t)
}

func TestCounterAndLatchCosts(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		c, l := counterAt(t, s, "/app/n"), latchAt(t, s, "/app/l", 3)
		must.Get(c.Add(ctx, 1))(t) // makes the node and the receipt
		must.Get(l.CountDown(ctx))(t)
		costs(t, srv, "adding", 1, 1, 0, func() { _, _ = c.Add(ctx, 1) })
		costs(t, srv, "getting", 0, 1, 0, func() { _, _ = c.Get(ctx) })
		waited := make(chan error, 1)
		costs(t, srv, "beginning to wait", 0, 1, 0, func() {
			go func() { waited <- l.Wait(ctx) }()
			synctest.Wait()
		})
		// No recipe polls, and a count wakes nobody who waits.
		idle(t, srv)
		costs(t, srv, "counting down", 1, 1, 0, func() { _, _ = l.CountDown(ctx) })
		costs(t, srv, "the last count, with one who waits", 1, 3, 1, func() {
			_, _ = l.CountDown(ctx)
			if err := <-waited; err != nil {
				t.Error(err)
			}
		})
		costs(t, srv, "counting down what is open", 0, 1, 0, func() {
			if n, err := l.CountDown(ctx); n != 0 || err != nil {
				t.Errorf("what is open has %d left, %v", n, err)
			}
		})
		if got, want := shape(srv, "/app"), "l l/_c_<guid>-receipt-0000000001 l/open l/remaining n n/_c_<guid>-receipt-0000000000"; got != want {
			t.Errorf("znodes %q; want %q", got, want)
		}
	})
}

// Somebody has made the znode with a shell, which gives it white space or nothing.
func TestACounterWithoutDigitsHasItsInitialValue(t *testing.T) {
	onEmbedded(t, func(s *scene, _ *zkserver.Server) {
		for i, data := range []string{"", " ", "\n", " \t\r\n"} {
			path := fmt.Sprintf("%s%d", s.path, i)
			if _, err := s.raw.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
			c := counterAt(t, s.session(), path)
			if n, err := c.Get(s.ctx); n != 0 || err != nil {
				t.Errorf("%q is %d, %v", data, n, err)
			}
			if n, err := c.Add(s.ctx, 3); n != 3 || err != nil {
				t.Errorf("3 more than %q is %d, %v", data, n, err)
			}
		}
	})
}
