// Package data contains the verbs that store and read data in ZooKeeper, or wait for a
// change: barriers, configurations, counters, groups, latches, names, queues, transactions.
package data

import (
	"context"
	"flag"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Verbs are the verbs of this package.
var Verbs = []verb.Verb{
	barrierSet, barrierRemove, barrierWait, configGet, configSet, configDelete, configWatch, counterGet, counterAdd,
	groupMembers, groupWatch, latchDown, latchCount, latchWait, namesList, namesLookup, namesUnregister,
	queuePut, queueTake, queuePeek, queueLen, queueDead, txBegin, txVote, txDone, txAbort, txStatus,
}

// pathAndDialect is embedded by verbs of recipes that other libraries have too.
type pathAndDialect struct {
	verb.OnePath
	dialect recipes.Dialect
}

func (p *pathAndDialect) Flags(f *flag.FlagSet) { verb.DialectFlag(f, &p.dialect) }

// number shows the number that f returns for a counter or a latch.
func number[R any](ctx context.Context, t *verb.Tool, path string, open func(recipes.Client) (R, error), f func(R, context.Context) (int64, error)) error {
	return verb.Ask(ctx, t, open, f, func(n int64) error { return t.Say(verb.Object{"path", path, "number", n}, n) })
}
