package main

import (
	"context"
	"errors"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// txAbortVerb ends a transaction that waits for a site.
type txAbortVerb struct {
	txPath
	reason string
}

func (v *txAbortVerb) describe() (arguments, synopsis, help string) {
	return "tx abort [flags] PATH", "Abort a two-phase commit that waits", `
Decides to abort the transaction at PATH, whatever the votes, unless there is a
decision, and shows the one that holds: it is the way out when a site does not vote
and nobody coordinates. If it was committed already, the exit code is 4.

` + onceCodes
}

func (v *txAbortVerb) flags(f *flag.FlagSet) {
	f.StringVar(&v.reason, "reason", "by hand", "`text` that tells people why")
}

func (v *txAbortVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		tx, err := s.Transaction(v.path, recipes.TransactionConfig{})
		if err != nil {
			return err
		}
		d, err := tx.Abort(ctx, v.reason)
		if err != nil {
			return err
		}
		var shown exitError
		switch err := v.decided(out, d); {
		case d.Commit && err == nil:
			return exitError{code: exitRefused} // stdout has said it
		case errors.As(err, &shown):
			return nil
		default:
			return err
		}
	})
}
