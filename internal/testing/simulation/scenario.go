package simulation

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// scenario is the work of the clients of a run.
type scenario struct {
	name  string
	paths []string // of the wait queues whose grants have a journal
	begin func(*World) game
	line  string // path of the wait queue; "" if there is none

	// unwrapped: the sequence numbers of line do not wrap. The recipe refuses contenders near
	// the end of the numbers.
	unwrapped bool

	open  opener // nil: openDirectly
	hop   bool   // with faults between application and plugin
	moves bool   // processes die or are replaced, and others resume their sessions
	quiet bool   // without faults, for defects that show without them

	// waits: clients may wait for each other for ever, so their progress is not checked.
	waits bool
}

// game is a scenario in one run.
type game struct {
	turn  turn
	check func(ctx context.Context, operator recipes.Client) // runs at the end, without faults; may be nil
}

// turn uses a recipe once. A client takes turns until it must stop. The error of a turn is a
// violation only if it is not expected.
type turn func(ctx context.Context, c *client, s recipes.Client) error

// scenarios are chosen by the seed. Adding or removing one changes the scenario of every seed.
var scenarios = []scenario{
	{name: "lock", line: "/lock", paths: []string{"/lock"}, begin: locks},
	{name: "election", line: "/election", paths: []string{"/election"}, begin: elections},
	{name: "semaphore", line: "/semaphore", begin: semaphores},
	{name: "shared lock", line: "/shared", paths: []string{"/shared"}, begin: sharedLocks},
	{name: "priority lock", line: "/priority", paths: []string{"/priority"}, begin: priorityLocks},
	{name: "queue", begin: queues},
	{name: "double barrier", line: "/barrier", begin: doubleBarriers},
	{name: "two-phase commit", begin: transactions},
	{name: "lock through a plugin", line: "/lock", paths: []string{"/lock"}, begin: locks, open: openThroughPlugin, hop: true},
	{name: "counter", begin: counters},
	// The operator does not delete names. A guarded write cannot distinguish a new znode with
	// the same name from its own while both have the same version.
	{name: "names", paths: []string{namesPath}, begin: names},
	{name: "barrier", begin: barriers},
	{name: "latch", begin: latches},
	{name: "group", line: groupPath, begin: groups},
	{name: "configuration", begin: configurations},
	{name: "priority queue", begin: priorityQueues},
	{name: "queue through a plugin", begin: queues, open: openThroughPlugin, hop: true},
	{name: "counter through a plugin", begin: counters, open: openThroughPlugin, hop: true},
	{name: "shared lock through a plugin", line: "/shared", paths: []string{"/shared"}, begin: sharedLocks, open: openThroughPlugin, hop: true},
	{name: "configuration through a plugin", begin: configurations, open: openThroughPlugin, hop: true},
	resumed("lock in a resumed session", none, lockKind),
	resumed("election in a resumed session", none, electionKind),
	resumed("semaphore in a resumed session", none, semaphoreKind),
	resumed("shared lock in a resumed session", none, sharedKind),
	resumed("priority lock in a resumed session", none, priorityKind),
	resumed("names in a resumed session", none, nameKind),
}
