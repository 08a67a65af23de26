package simulation

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// scenario is what the clients of a run do.
type scenario struct {
	name  string
	paths []string // of its journals
	begin func(*World) game
	line  string // path of the wait queue; "" if there is none

	// unwrapped: the sequence numbers of line do not wrap. The recipe refuses contenders near
	// the end of the numbers.
	unwrapped bool

	open  opener // nil: the library
	hop   bool   // there are faults between application and plugin
	moves bool   // processes die or are replaced, and their sessions are resumed
	quiet bool   // without faults, for defects that need none

	// excused are clients that need not make progress: their library may stand still for
	// good, which is not what is tested. nil: none.
	excused func(*client) bool
}

// game is a scenario in one run.
type game struct {
	turn  turn
	check func(ctx context.Context, operator recipes.Client) // at the end, without faults; may be nil
}

// turn is what a client does with a recipe, again and again. An error is not
// always a fault: see expected.
type turn func(ctx context.Context, c *client, s recipes.Client) error

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
	// Nobody deletes names here: a guarded write does not distinguish the next znode of
	// its name from its own while both have the same version.
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
