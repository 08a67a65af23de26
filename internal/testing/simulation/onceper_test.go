package simulation

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestSimulationOfPeriods simulates OncePer.
func TestSimulationOfPeriods(t *testing.T) {
	worked := 0
	for _, r := range simulateEach(t, number(40, 40)/20,
		scenario{name: "once per period", line: oncePath, paths: []string{oncePath}, begin: periods},
		scenario{name: "once per period through a plugin", line: oncePath, paths: []string{oncePath}, begin: periods, open: openThroughPlugin, hop: true}) {
		worked += r.Faults["a turn of a period"]
	}
	if worked == 0 {
		t.Error("no turn was due")
	}
}

const (
	oncePath   = "/once"
	oncePeriod = 3 * time.Second
)

// almanac is what the clients know of their turns. A turn is counted when Count has returned nil.
// A client that dies before that leaves a turn that may count or not.
type almanac struct {
	mu      sync.Mutex
	ahead   time.Duration
	forward time.Duration // by how much the leader's clock was set forward, in all
	back    bool          // the clock was set back
	counted []mark        // times before turns that are counted
	tried   map[int64]bool
}

// mark is a moment, by the virtual clock, which is right.
type mark struct {
	at      time.Time
	forward time.Duration
	token   recipes.Token // of the grant of the turn
}

func (a *almanac) now(g *grant) mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	return mark{time.Now(), a.forward, g.Token()}
}

// setClock sets the clock of the leader.
func (a *almanac) setClock(w *World, by time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.fault("servers", "clock", "set by %v", by)
	a.ahead += by
	a.back = a.back || by < 0
	a.forward += max(by, 0)
	w.server.SetClock(a.ahead)
}

// due checks that a turn, which began before m, began at least a period after each one that is
// counted. A clock that was set forward shortens the period. A counted turn of a later grant does
// not matter: this turn's grant was then lost, so this turn cannot count. The caller holds the
// mutex.
func (a *almanac) due(c *client, m mark) {
	for _, last := range a.counted {
		if passed := m.at.Sub(last.at) + m.forward - last.forward; last.token <= m.token && passed < oncePeriod {
			c.world.fail(c.name, "a turn is due %v after another, and counts", passed)
		}
	}
}

// early checks that a caller gets a NotDueError only after a turn that a client has counted, or
// tried to count.
func (a *almanac) early(c *client, e *recipes.NotDueError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.note("%v", e)
	if !a.back && (e.Back > 0 || !a.tried[e.Last.UnixMilli()]) {
		c.world.fail(c.name, "%v: no client has counted a turn that began then", e)
	}
}

// count counts a turn that began between m and begun. No turn of a later grant is counted before that.
func (a *almanac) count(ctx context.Context, c *client, t *recipes.Turn, m, begun mark) error {
	a.mu.Lock()
	a.tried[t.Began().UnixMilli()] = true
	later := slices.ContainsFunc(a.counted, func(other mark) bool { return other.token > m.token })
	a.mu.Unlock()
	if err := t.Count(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if later {
		c.world.fail(c.name, "counted a turn after that of a later grant")
	}
	a.due(c, begun)
	a.counted = append(a.counted, m)
	return nil
}

// periods has clients work at most once a period. The leader's clock is set. At the end a turn must become due.
func periods(w *World) game {
	a := &almanac{tried: map[int64]bool{}}
	take := func(ctx context.Context, s recipes.Client, cfg recipes.LockConfig) (recipes.Hold, recipes.Configuration, error) {
		l, err := s.Lock(oncePath, cfg)
		if err != nil {
			return nil, nil, err
		}
		record, err := s.Configuration(oncePath)
		if err != nil {
			return nil, nil, err
		}
		hold, err := l.Acquire(ctx)
		return hold, record, err
	}
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		wait, cancel := c.patience(ctx)
		defer cancel()
		hold, record, err := take(wait, s, recipes.LockConfig{Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
		if err != nil {
			return err
		}
		g := &grant{client: c, session: s, path: oncePath, journaled: true, Grant: hold}
		w.ledger.enter(g, 1)
		if c.chance.chance(10) && w.calm.Err() == nil {
			a.setClock(w, pick(c.chance, -time.Hour, -oncePeriod/2, -10*time.Millisecond, oncePeriod/2, time.Hour))
		}
		err = a.once(ctx, g, record)
		w.ledger.leave(g)
		release := hold.Release(ctx)
		c.note("released %s: %v", g.Znode(), release)
		return errors.Join(err, release)
	}, check: func(ctx context.Context, s recipes.Client) {
		hold, record, err := take(ctx, s, recipes.LockConfig{})
		for begun := time.Now(); err == nil; _ = sleep(ctx, 100*time.Millisecond) {
			_, err = recipes.OncePer(ctx, hold, record, oncePeriod)
			early := (*recipes.NotDueError)(nil)
			if !errors.As(err, &early) {
				break
			}
			if time.Since(begun) < 2*oncePeriod {
				err = nil
			}
		}
		if err != nil {
			w.fail(operatorName, "no turn is due at the end: %v", err)
		}
	}}
}

// once works once if a turn is due. Then it counts the turn, before or after the work. Some work
// fails, and does not count.
func (a *almanac) once(ctx context.Context, g *grant, record recipes.Configuration) error {
	c, m := g.client, a.now(g)
	t, err := recipes.OncePer(ctx, g, record, oncePeriod)
	if early := (*recipes.NotDueError)(nil); errors.As(err, &early) {
		a.early(c, early)
		return nil
	}
	if err != nil {
		return err
	}
	c.world.fault(c.name, "a turn of a period", "began at %v", t.Began())
	begun := a.now(g)
	a.mu.Lock()
	a.due(c, begun)
	a.mu.Unlock()
	first := c.chance.chance(30)
	if !first {
		c.work(ctx, g)
		if c.chance.chance(30) {
			return nil
		}
	}
	err = a.count(ctx, c, t, m, begun)
	if first && err == nil {
		c.work(ctx, g)
	}
	return err
}
