package simulation

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// dialectScenarios put our contenders and those of another library into one wait queue. Every
// second client is a stranger.
var dialectScenarios = []scenario{
	{name: "lock in a dialect", line: dialectLine, paths: []string{dialectLine}, begin: dialectLocks, open: openEither, excused: isStrange},
	{name: "election in a dialect", line: dialectLine, paths: []string{dialectLine}, begin: dialectElections, open: openEither, excused: isStrange},
	{name: "shared lock in a dialect", line: dialectLine, paths: []string{dialectLine}, begin: dialectSharedLocks, open: openEither, excused: isStrange},
	{name: "semaphore in a dialect", begin: dialectSemaphores, open: openEither, excused: isStrange},
	// A member of theirs can wait for ever, and ours then waits too.
	{name: "double barrier in a dialect", begin: dialectRounds, open: openEither, excused: func(*client) bool { return true }},
}

// allScenarios are the scenarios from which a seed chooses.
var allScenarios = append(append([]scenario(nil), scenarios...), dialectScenarios...)

// scenarioOf returns the scenario of a seed.
func scenarioOf(seed uint64) scenario { return allScenarios[seed%uint64(len(allScenarios))] }

// strange reports whether the client with this number belongs to another library.
func strange(number int) bool { return number%2 == 0 }

func isStrange(c *client) bool { return strange(c.number) }

func openEither(ctx context.Context, h *host) (recipes.Client, error) {
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

// ofTheirs returns a stranger of the dialect, with the marker of its contenders.
func ofTheirs(d recipes.Dialect, curator, kazoo string) stranger {
	if d == recipes.Kazoo {
		return stranger{dialect: d, markers: []string{kazoo}}
	}
	return stranger{dialect: d, markers: []string{curator}}
}

// either returns a game in which strangers call theirs, and other clients call ours.
func either(theirs, ours func(context.Context, *client, recipes.Client) error) game {
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		if isStrange(c) {
			return theirs(ctx, c, s)
		}
		return ours(ctx, c, s)
	}}
}

const dialectLine = "/line"

// turns takes a turn with one of the stranger's markers.
func (l stranger) turns(ctx context.Context, c *client, s recipes.Client) error {
	return l.turn(ctx, c, s, dialectLine, pick(c.chance, l.markers...))
}

func dialectLocks(w *World) game {
	d := otherDialect(w)
	return either(ofTheirs(d, "lock-", "__lock__").turns, func(ctx context.Context, c *client, s recipes.Client) error {
		return lockTurn(ctx, c, s, dialectLine, d, recipes.Strategies())
	})
}

func dialectElections(w *World) game {
	d := otherDialect(w)
	return either(ofTheirs(d, "latch-", "__lock__").turns, func(ctx context.Context, c *client, s recipes.Client) error {
		return electionTurn(ctx, c, s, dialectLine, d)
	})
}

func dialectSharedLocks(w *World) game {
	d := otherDialect(w)
	theirs := stranger{dialect: d, markers: []string{"__READ__", "__WRIT__"}, readers: "__READ__"}
	if d == recipes.Kazoo {
		theirs.markers, theirs.readers = []string{"__rlock__", "__lock__"}, "__rlock__"
	}
	return either(theirs.turns, func(ctx context.Context, c *client, s recipes.Client) error {
		return sharedTurn(ctx, c, s, dialectLine, d)
	})
}

func dialectSemaphores(w *World) game {
	d, permits := otherDialect(w), 1+w.chance.below(3)
	theirs := ofTheirs(d, "lock-", "__lock__")
	return either(func(ctx context.Context, c *client, s recipes.Client) error {
		return theirs.permit(ctx, c, s, permits)
	}, func(ctx context.Context, c *client, s recipes.Client) error {
		return semaphoreTurn(ctx, c, s, dialectLine, d, permits)
	})
}
