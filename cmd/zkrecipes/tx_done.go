package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// txDoneVerb says that a site has acted on the decision.
type txDoneVerb struct {
	exitCodeOnly
	txPath
	site string
}

func (v *txDoneVerb) describe() doc {
	return doc{
		usage:    "tx done [flags] PATH SITE",
		synopsis: "Say that a site has acted on the decision",
		about: `
Says that SITE has acted on the decision of the transaction at PATH, and will not ask
for it again. When all sites have said so, the transaction is deleted.
`,
		examples: [2]string{
			"zkrecipes tx done /deploy/7 db",
			"zkrecipes tx done -format=json /deploy/7 db",
		},
		rules: `
It may be said again. Exit code 3 says that all sites are done.

` + onceCodes,
	}
}

func (v *txDoneVerb) arguments(args []string) error {
	if len(args) != 2 {
		return errors.New("give PATH and SITE, after the flags")
	}
	v.path, v.site = args[0], args[1]
	return cmp.Or(recipes.ValidatePath(v.path), recipes.ValidateSites([]string{v.site}))
}

func (v *txDoneVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		tx, err := s.Transaction(v.path, recipes.TransactionConfig{})
		if err != nil {
			return err
		}
		// A site with its own node that joined before the decision, and left at
		// once, would be dead, and abort it.
		status, err := tx.Status(ctx)
		if err != nil {
			return err
		}
		if status.Decision == nil {
			return v.explain(fmt.Errorf("%w: there is no decision that %s could have acted on", recipes.ErrUndecided, v.site))
		}
		site, err := tx.Join(ctx, v.site)
		if err != nil {
			return v.explain(err)
		}
		if err := site.Done(ctx); err != nil {
			return err
		}
		return out.done(struct {
			Path string `json:"path"`
			Site string `json:"site"`
			Done bool   `json:"done"`
		}{v.path, v.site, true})
	})
}
