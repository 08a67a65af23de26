package zookeeper_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// crowd holds the members of one path, which share n numbers.
type crowd struct {
	testing.TB
	srv     *zkserver.Server
	n       int
	members map[int]recipes.Client // key: the order of joining
	owned   map[int]int
	reports chan [2]int // a member, and how many numbers it owns now; -1: it has ended
}

func (c *crowd) join(members ...int) {
	c.Helper()
	var g errgroup.Group
	for _, i := range members {
		s := c.members[i]
		g.Go(func() error {
			shares, err := s.Shares("/shares", c.n, recipes.SharesConfig{})
			if err != nil {
				return err
			}
			p, err := shares.Join(c.Context())
			if err != nil {
				return err
			}
			go func() { // until the session ends
				report := func(n int) {
					select {
					case c.reports <- [2]int{i, n}:
					case <-c.Context().Done():
					}
				}
				for list := range p.Changes() {
					report(len(list))
				}
				report(-1)
			}()
			return nil
		})
	}
	must.Do(c, g.Wait())
}

// settle waits until the members own all numbers, evenly.
func (c *crowd) settle(members int) {
	c.Helper()
	for {
		sum, least, most := 0, c.n, 0
		for n := range maps.Values(c.owned) {
			sum, least, most = sum+n, min(least, n), max(most, n)
		}
		if len(c.owned) == members && sum == c.n && most-least <= 1 {
			return
		}
		select {
		case r := <-c.reports:
			c.owned[r[0]] = r[1]
			if r[1] < 0 {
				delete(c.owned, r[0])
			}
		case <-c.Context().Done():
			c.Fatalf("%d members own %v", members, c.owned)
		}
	}
}

// TestSharesAtScale: docs/recipes.md gives these costs. They grow with the members and with the numbers that
// move, and not with their product.
func TestSharesAtScale(t *testing.T) {
	for _, size := range []struct{ members, n int }{{2, 20}, {10, 100}, {100, 1000}} {
		t.Run(fmt.Sprint(size.members, " members and ", size.n, " numbers"), func(t *testing.T) {
			c := &crowd{t, zktest.Embedded(t), size.n, make(map[int]recipes.Client), make(map[int]int), make(chan [2]int, 1000)}
			for i := range size.members + 1 {
				c.members[i] = zktest.Open(t, c.srv)
			}
			m, moved := int64(size.members), int64(size.n/(size.members+1))
			check := func(what string, most zktest.Cost, change func()) {
				begun := time.Now()
				got := zktest.CostOf(c.srv, change)
				t.Logf("%s: %v, %v", what, got, time.Since(begun).Round(time.Millisecond))
				if got.Writes > most.Writes || got.Reads > most.Reads || got.Events > most.Events {
					t.Errorf("%s: %v; at most %v", what, got, most)
				}
			}
			var all []int
			for i := range size.members {
				all = append(all, i)
			}
			check("all join at once", zktest.Cost{Writes: 1 << 20, Reads: 1 << 20, Events: 1 << 20}, func() {
				c.join(all...)
				c.settle(size.members)
			})
			check("another one joins", zktest.Cost{Writes: 5 + 4*moved, Reads: 20 + 2*m + 9*moved, Events: 3 + 2*m + 3*moved}, func() {
				c.join(size.members)
				c.settle(size.members + 1)
			})
			check("the last one leaves", zktest.Cost{Writes: 5 + 2*moved, Reads: 20 + 2*m + 5*moved, Events: 5 + 2*m + 3*moved}, func() {
				must.Report(t, c.members[size.members].Close(t.Context()))
				c.settle(size.members)
			})
			check("the assigner leaves", zktest.Cost{Writes: 1 << 20, Reads: 1 << 20, Events: 1 << 20}, func() {
				must.Report(t, c.members[0].Close(t.Context()))
				c.settle(size.members - 1)
			})
		})
	}
}
