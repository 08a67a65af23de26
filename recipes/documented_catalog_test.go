package recipes_test

import (
	"context"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// withTheCatalog adds a row for each recipe of the catalog that has none. A semaphore has two permits.
func withTheCatalog(rows map[string]documentation) map[string]documentation {
	for _, w := range grants.All() {
		name := strings.ToUpper(w.Recipe()[:1]) + w.Recipe()[1:]
		if _, has := rows[name]; !has {
			rows[name] = documentationOf(w)
		}
	}
	return rows
}

func documentationOf(w grants.Way) documentation {
	open := func(t trial) grants.Entrance {
		e := must.Get(w.Open(t.s, t.path, grants.Options{Permits: 2}))(t)
		return e
	}
	operation := func(method string) string { // "Lock.Acquire"
		_, name, _ := strings.Cut(method, ".")
		return strings.ToLower(name)
	}
	giveBack := func(g recipes.Grant, ctx context.Context) error { return w.GiveBack(ctx, g) }
	return documentation{
		use:     func(t trial) { _, err := open(t).Get(t.ctx); t.must(err) },
		operate: func(t trial) { pair(t, operation(w.Method), open(t).Get, operation(w.Gives), giveBack) },
	}
}

// pair measures an operation and its end, after a first use of the path that also creates parents
// and receipts.
func pair[G any](t trial, begin string, do func(context.Context) (G, error), end string, undo func(G, context.Context) error) {
	var g G
	doing := func() (err error) { g, err = do(t.ctx); return err }
	undoing := func() error { return undo(g, t.ctx) }
	t.measure("(first)", doing)
	t.measure("(first end)", undoing)
	t.measure(begin, doing)
	t.measure(end, undoing)
}

func (t trial) hold() recipes.Hold {
	lock := must.Get(t.s.Lock(t.path, recipes.LockConfig{}))(t)
	hold := must.Get(lock.Acquire(t.ctx))(t)
	return hold
}

func (t trial) turn(hold recipes.Hold) *recipes.Turn {
	record := must.Get(t.s.Configuration(t.path))(t)
	turn := must.Get(recipes.OncePer(t.ctx, hold, record, time.Hour))(t)
	return turn
}

func errOf[T any](_ T, err error) error { return err }
