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

func (v *txAbortVerb) describe() doc {
	return doc{
		usage:    "tx abort [flags] PATH",
		synopsis: "Abort a two-phase commit that waits",
		about: `
Decides to abort the transaction at PATH, whatever the votes are. If there is a
decision already, it shows that one.
`,
		examples: [2]string{
			"zkrecipes tx abort -reason 'site cache is down' /deploy/7",
			"zkrecipes tx abort -format=json /deploy/7",
		},
		rules: `
It is the way out when a site does not vote and nobody coordinates. If the transaction
was committed already, the exit code is 4.

` + onceCodes,
	}
}

func (v *txAbortVerb) flags(f *flag.FlagSet) {
	f.StringVar(&v.reason, "reason", "by hand", "`text` that says why")
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
