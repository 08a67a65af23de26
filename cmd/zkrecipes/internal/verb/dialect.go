package verb

import (
	"errors"
	"flag"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Dialect is with whose programs a recipe shares its path. It is a flag.Value.
type Dialect recipes.Dialect

func (d *Dialect) String() string { return "" }

// Set implements flag.Value.
func (d *Dialect) Set(name string) error {
	parsed, err := recipes.Dialect(name).Normalize()
	*d = Dialect(parsed)
	return err
}

// Other reports whether it is not the default.
func (d Dialect) Other() bool { return d != "" && d != Dialect(recipes.DefaultDialect) }

// Flag defines -dialect.
func (d *Dialect) Flag(f *flag.FlagSet) {
	f.Var(d, "dialect", "share PATH with this `library`: zookeeper, curator or kazoo (default zookeeper)")
}

// joins are the verbs that share a wait queue with a contender that was seen, by its
// dialect and recipe.
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

// Foreign says what to do about a contender that shares no wait queue with the caller's.
func Foreign(err error) error {
	f, ok := errors.AsType[*recipes.ForeignError](err)
	if !ok {
		return err
	}
	verb := joins[f.Dialect][f.Recipe]
	switch {
	case f.Dialect != recipes.DefaultDialect && verb == "":
		return fmt.Errorf("%w: use -dialect %s, or another PATH", err, f.Dialect)
	case f.Dialect != recipes.DefaultDialect:
		return fmt.Errorf("%w: use -dialect %s (zkrecipes %s), or another PATH", err, f.Dialect, verb)
	case verb == "":
		return fmt.Errorf("%w: zkrecipes has no such recipe: give another PATH", err)
	}
	return fmt.Errorf("%w: use another PATH, or zkrecipes %s", err, verb)
}
