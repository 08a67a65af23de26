package main

import (
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// dialect is with whose programs a recipe shares its path. It is a flag.Value.
type dialect recipes.Dialect

func (d *dialect) String() string { return "" }

func (d *dialect) Set(name string) error {
	parsed, err := recipes.ParseDialect(name)
	*d = dialect(parsed)
	return err
}

// other reports whether it is not the default.
func (d dialect) other() bool { return d != "" && d != dialect(recipes.DefaultDialect) }

const dialectUsage = "share PATH with this `library`: zookeeper, curator or kazoo (default zookeeper)"

// joins are how to stand in line with a contender that was seen.
var joins = map[string]string{
	"Lock":                      "lock or elect",
	"ReadLock":                  "lock with -shared or -exclusive",
	"InterProcessReadWriteLock": "lock with -shared or -exclusive",
	"LeaderLatch":               "elect",
	"InterProcessSemaphoreV2":   "lock with -n",
	"Semaphore":                 "lock with -n",
	"SimpleDistributedQueue":    "queue put or queue take",
	"Queue":                     "queue put or queue take",
	"DistributedAtomicLong":     "counter",
	"DistributedDoubleBarrier":  "double-barrier",
	"DoubleBarrier":             "double-barrier",
}

// foreign says what to do about a contender of another library.
func foreign(err error) error {
	var f *recipes.ForeignError
	switch {
	case !errors.As(err, &f):
		return err
	case f.Dialect == recipes.DefaultDialect:
		return fmt.Errorf("%w; leave -dialect out, or give another PATH", err)
	}
	verb := joins[f.Recipe]
	if verb != "" {
		verb = " (zkrecipes " + verb + ")"
	}
	return fmt.Errorf("%w: use -dialect %s%s, or another PATH", err, f.Dialect, verb)
}
