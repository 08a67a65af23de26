package verb

import (
	"errors"
	"flag"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// DialectFlag defines -dialect.
func DialectFlag(f *flag.FlagSet, d *recipes.Dialect) {
	f.Func("dialect", "share PATH with programs of this `library`: zookeeper, curator or kazoo (default zookeeper)", func(name string) (err error) {
		*d, err = recipes.Dialect(name).Normalize()
		return err
	})
}

// OtherLibrary reports whether d is the dialect of another library.
func OtherLibrary(d recipes.Dialect) bool { return d != "" && d != recipes.ZooKeeper }

// joins are the verbs that share the wait queue of a contender, by its dialect and recipe.
var joins = map[recipes.Dialect]map[string]string{
	recipes.ZooKeeper: {
		"Lock":         "lock without -n, -shared, -exclusive, -priority and -dialect; Curator's InterProcessMutex and LeaderSelector have the names of a lock",
		"Semaphore":    "lock with -n, and without -dialect; zkrecipes semaphore PATH shows the number of permits",
		"SharedLock":   "lock with -shared or -exclusive, and without -dialect",
		"PriorityLock": "lock with -priority",
		"Election":     "elect without -dialect",
		"Queue":        "queue without -dialect",
		"Counter":      "counter without -dialect",
	},
	recipes.Curator: {
		"InterProcessReadWriteLock": "lock with -shared or -exclusive",
		"LeaderLatch":               "elect",
		"InterProcessSemaphoreV2":   "lock with -n, 1 for InterProcessSemaphoreMutex",
		"SimpleDistributedQueue":    "queue put or queue take",
		"DistributedAtomicLong":     "counter",
		"DistributedDoubleBarrier":  "double-barrier",
	},
	recipes.Kazoo: {
		"Lock":          "lock or elect",
		"ReadLock":      "lock with -shared or -exclusive",
		"Semaphore":     "lock with -n",
		"Queue":         "queue put or queue take",
		"DoubleBarrier": "double-barrier",
	},
}

// Foreign adds advice to an error that names a third-party contender: the verb and the
// dialect that share its wait queue.
func Foreign(err error) error {
	f, ok := errors.AsType[*recipes.ForeignError](err)
	if !ok {
		return err
	}
	verb := joins[f.Dialect][f.Recipe]
	switch {
	case f.Dialect != recipes.ZooKeeper && verb == "":
		return fmt.Errorf("%w: use -dialect %s, or another PATH", err, f.Dialect)
	case f.Dialect != recipes.ZooKeeper:
		return fmt.Errorf("%w: use -dialect %s (zkrecipes %s), or another PATH", err, f.Dialect, verb)
	case verb == "":
		return fmt.Errorf("%w: zkrecipes has no such recipe: give another PATH", err)
	}
	return fmt.Errorf("%w: use another PATH, or zkrecipes %s", err, verb)
}
