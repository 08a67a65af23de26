// Package data has the verbs that store something in ZooKeeper, read it, or wait for it to
// change: barriers, configurations, counters, groups, latches, names, queues, transactions.
package data

import (
	"context"
	"flag"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Verbs are those of this package.
var Verbs = []verb.Verb{
	barrierSet, barrierRemove, barrierWait, configGet, configSet, configDelete, configWatch, counterGet, counterAdd,
	groupMembers, groupWatch, latchDown, latchCount, latchWait, namesList, namesLookup, namesUnregister,
	queuePut, queueTake, queuePeek, queueLen, queueDead, txBegin, txVote, txDone, txAbort, txStatus,
}

// pathAndDialect is PATH of a recipe that other libraries have too.
type pathAndDialect struct {
	verb.OnePath
	dialect verb.Dialect
}

func (p *pathAndDialect) Flags(f *flag.FlagSet) { p.dialect.Flag(f) }

// number shows what f returns of a counter, or of a latch.
func number[R any](ctx context.Context, t *verb.Tool, path string, open func(recipes.Client) (R, error), f func(R, context.Context) (int64, error)) error {
	return verb.Ask(ctx, t, open, f, func(n int64) error { return t.Say(verb.Object{"path", path, "number", n}, n) })
}
