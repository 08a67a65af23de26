// Package data contains the verbs that store and read data in ZooKeeper, or wait for a
// change: barriers, configurations, counters, groups, latches, names, queues, transactions.
package data

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"time"

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

func number[R any](ctx context.Context, t *verb.Tool, path string, open func(recipes.Client) (R, error), f func(R, context.Context) (int64, error)) error {
	return verb.Ask(ctx, t, open, f, func(n int64) error { return t.Say(verb.Object{"path", path, "number", n}, n) })
}

// ownedJSON is a member of a group, or a name: a znode that a session owns, unless it is persistent.
type ownedJSON struct {
	Name       string    `json:"name"`
	Znode      string    `json:"znode"`
	Since      time.Time `json:"since"`
	Persistent *bool     `json:"persistent,omitempty"` // of a name
	SessionID  string    `json:"session_id,omitempty"` // in hexadecimal, as in ZooKeeper's tools; a persistent name has none
	Token      int64     `json:"token"`
	verb.Data
	Unreadable bool `json:"unreadable,omitempty"` // the data cannot be read
}

func ownedInJSON(r recipes.Record) ownedJSON {
	return ownedJSON{
		Name: r.Name, Znode: r.Znode, Since: r.Since.UTC(), SessionID: fmt.Sprintf("%#x", uint64(r.SessionID)), Token: int64(r.Token),
		Data: verb.InJSON(r.Data), Unreadable: r.Unreadable,
	}
}

// showOwned writes the members of a group, or the names of a directory.
func showOwned(t *verb.Tool, path, list string, all []recipes.Record, inJSON func(recipes.Record) ownedJSON) error {
	return t.Result(verb.Object{"path", path, list, verb.List(all, inJSON)}, verb.Table("NAME\tSINCE\tSESSION\tTOKEN\tDATA", all, func(r recipes.Record) []string {
		j, data := inJSON(r), verb.Printable(r.Data)
		if r.Unreadable {
			data = "(unreadable)"
		}
		if r.Unreadable && r.Token == 0 {
			return []string{r.Name, "-", "-", "-", data}
		}
		return []string{r.Name, j.Since.Format(time.RFC3339), cmp.Or(j.SessionID, "persistent"), fmt.Sprint(r.Token), data}
	}))
}
