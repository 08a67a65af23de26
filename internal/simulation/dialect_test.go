package simulation

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// dialectScenarios have ours and contenders of another library in one line. Every
// second client is a stranger.
var dialectScenarios = []scenario{
	{name: "lock in a dialect", line: "/line", paths: []string{"/line"}, begin: dialectLocks, open: openEither, excused: isStrange},
	{name: "election in a dialect", line: "/line", paths: []string{"/line"}, begin: dialectElections, open: openEither, excused: isStrange},
	{name: "shared lock in a dialect", line: "/line", paths: []string{"/line"}, begin: dialectSharedLocks, open: openEither, excused: isStrange},
	{name: "semaphore in a dialect", begin: dialectSemaphores, open: openEither, excused: isStrange},
}

// allScenarios are those of a seed.
var allScenarios = append(append([]scenario(nil), scenarios...), dialectScenarios...)

// scenarioOf is what the clients do with a seed.
func scenarioOf(seed uint64) scenario { return allScenarios[seed%uint64(len(allScenarios))] }

// strange reports whether a client, by the number in its name, is of another library.
func strange(number int) bool { return number%2 == 0 }

func isStrange(c *client) bool { return strange(c.number) }

func openEither(ctx context.Context, h *host) (recipes.Session, error) {
	var number int
	if _, err := fmt.Sscanf(h.name, "client %d.", &number); err != nil {
		return nil, err
	}
	if strange(number) {
		return openRaw(ctx, h)
	}
	return zookeeper.OpenWith(h.Dial)(ctx, sessionConfig)
}

func otherDialect(w *World) recipes.Dialect { return pick(w.chance, recipes.Curator, recipes.Kazoo) }

func dialectLocks(w *World) game {
	d := otherDialect(w)
	theirs := stranger{dialect: d, markers: []string{"lock-"}}
	if d == recipes.Kazoo {
		theirs.markers = []string{"__lock__"}
	}
	return game{turn: func(ctx context.Context, c *client, s recipes.Session) error {
		if strange(c.number) {
			return theirs.turn(ctx, c, s, "/line", theirs.markers[0])
		}
		unconfirmed := c.chance.chance(50)
		l, err := s.Lock("/line", recipes.LockConfig{Dialect: d, Strategy: pick(c.chance, recipes.Strategies()...), Unconfirmed: unconfirmed, Joined: c.joined})
		if err != nil {
			return err
		}
		wait, cancel := c.patience(ctx)
		defer cancel()
		hold, err := l.Acquire(wait)
		if err != nil {
			return err
		}
		return c.hold(ctx, &grant{client: c, session: s, path: "/line", Grant: hold, journaled: true, unconfirmed: unconfirmed}, 1, hold.Release)
	}}
}

func dialectElections(w *World) game {
	d := otherDialect(w)
	theirs := stranger{dialect: d, markers: []string{"latch-"}}
	if d == recipes.Kazoo {
		theirs.markers = []string{"__lock__"}
	}
	return game{turn: func(ctx context.Context, c *client, s recipes.Session) error {
		if strange(c.number) {
			return theirs.turn(ctx, c, s, "/line", theirs.markers[0])
		}
		e, err := s.Election("/line", recipes.ElectionConfig{Dialect: d, Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
		if err != nil {
			return err
		}
		wait, cancel := c.patience(ctx)
		defer cancel()
		leadership, err := e.Campaign(wait, []byte(c.name))
		if err != nil {
			return err
		}
		return c.hold(ctx, &grant{client: c, session: s, path: "/line", Grant: leadership, journaled: true}, 1, leadership.Resign)
	}}
}

func dialectSharedLocks(w *World) game {
	d := otherDialect(w)
	theirs := stranger{dialect: d, markers: []string{"__READ__", "__WRIT__"}, readers: "__READ__"}
	if d == recipes.Kazoo {
		theirs.markers, theirs.readers = []string{"__rlock__", "__lock__"}, "__rlock__"
	}
	return game{turn: func(ctx context.Context, c *client, s recipes.Session) error {
		if strange(c.number) {
			return theirs.turn(ctx, c, s, "/line", pick(c.chance, theirs.markers...))
		}
		l, err := s.SharedLock("/line", recipes.SharedLockConfig{Dialect: d, Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
		if err != nil {
			return err
		}
		wait, cancel := c.patience(ctx)
		defer cancel()
		acquire, shared := l.AcquireWrite, false
		if c.chance.chance(50) {
			acquire, shared = l.AcquireRead, true
		}
		hold, err := acquire(wait)
		if err != nil {
			return err
		}
		g := &grant{client: c, session: s, path: "/line", Grant: hold, shared: shared, journaled: true}
		if shared || c.chance.chance(70) {
			return c.hold(ctx, g, 1, hold.Release)
		}
		c.world.ledger.enter(g, 1)
		c.work(ctx, g)
		c.world.ledger.share(g)
		c.note("downgraded %s: %v", hold.Znode(), hold.Downgrade(ctx))
		c.work(ctx, g)
		c.world.ledger.leave(g)
		return hold.Release(ctx)
	}}
}

func dialectSemaphores(w *World) game {
	d, permits := otherDialect(w), 1+w.chance.below(3)
	theirs := stranger{dialect: d, markers: []string{"lock-"}}
	if d == recipes.Kazoo {
		theirs.markers = []string{"__lock__"}
	}
	return game{turn: func(ctx context.Context, c *client, s recipes.Session) error {
		if strange(c.number) {
			return theirs.permit(ctx, c, s, permits)
		}
		l, err := s.Semaphore("/line", recipes.SemaphoreConfig{Dialect: d, Permits: permits, Joined: c.joined})
		if err != nil {
			return err
		}
		wait, cancel := c.patience(ctx)
		defer cancel()
		hold, err := l.Acquire(wait)
		if err != nil {
			return err
		}
		return c.hold(ctx, &grant{client: c, session: s, path: "/line", Grant: hold}, permits, hold.Release)
	}}
}
