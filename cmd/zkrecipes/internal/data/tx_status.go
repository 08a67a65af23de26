package data

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var txAbort = verb.Verb{
	Name: "tx abort", Usage: "[flags] PATH", New: verb.New[txAbortVerb],
	Synopsis: "Abort a two-phase commit that waits",
	Help: `Aborts the transaction at PATH, whatever the votes are. If there is already a
decision, it shows that decision.

    zkrecipes tx abort -reason 'site cache is down' /deploy/7
    zkrecipes tx abort -format=json /deploy/7

Use it when a site does not vote and there is no coordinator. If the transaction is
already committed, the exit code is 4.

` + verb.OnceCodes,
}

type txAbortVerb struct {
	txPath
	reason string
}

func (v *txAbortVerb) Flags(f *flag.FlagSet) {
	f.StringVar(&v.reason, "reason", "by hand", helptext.Common("the reason for the abort, a `text` that all sites see"))
}

func (v *txAbortVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Ask(ctx, t, v.open, func(tx recipes.Transaction, ctx context.Context) (recipes.Decision, error) {
		return tx.Abort(ctx, v.reason)
	}, func(d recipes.Decision) error {
		err := v.decided(t, d)
		if d.Commit && err == nil {
			return exit.Silently(exit.Refused) // the decision was shown
		}
		if _, shown := errors.AsType[exit.Error](err); shown {
			return nil
		}
		return err
	})
}

var txDone = verb.Verb{
	Name: "tx done", Usage: "[flags] PATH SITE", New: verb.New[txDoneVerb], ExitCodeOnly: true,
	Synopsis: "Record that a site has acted on the decision",
	Help: `Records that SITE has acted on the decision of the transaction at PATH, and needs it no
longer. When all sites are done, the transaction is deleted.

    zkrecipes tx done /deploy/7 db
    zkrecipes tx done -format=json /deploy/7 db

You may repeat the call. Exit code 3 means that all sites are done.

` + verb.OnceCodes,
}

type txDoneVerb struct{ txSite }

func (v *txDoneVerb) Arguments(args []string) error {
	if len(args) != 2 {
		return errors.New("give PATH and SITE, after the flags")
	}
	return v.take(args[0], args[1])
}

func (v *txDoneVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Once(ctx, t, v.open, func(ctx context.Context, tx recipes.Transaction) error {
		// Join only after the decision. With own-nodes, a site that joined before it and left at
		// once would be dead, and the transaction would be aborted.
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
		return t.Done(verb.Object{"path", v.Path, "site", v.site, "done", true})
	})
}

var txStatus = verb.Verb{
	Name: "tx status", Usage: "[flags] PATH", New: verb.New[txStatusVerb],
	Synopsis: "Show the votes and the decision of a two-phase commit",
	Help: `Shows the transaction at PATH: its data, its decision, whether it has a coordinator, and
the vote of each site. The answer may be outdated when you read it.

    zkrecipes tx status /deploy/7
    zkrecipes tx status -format=json /deploy/7

DONE shows whether the site has acted on the decision.

` + verb.OnceCodes,
}

type txStatusVerb struct{ txPath }

func (v *txStatusVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Ask(ctx, t, v.open, recipes.Transaction.Status, func(status recipes.TransactionStatus) error {
		return t.Result(v.inJSON(status), func(w io.Writer) { txTable(w, status) })
	})
}

type statusJSON struct {
	Path        string `json:"path"`
	Variant     string `json:"variant"`
	Decision    string `json:"decision"` // commit, abort, or empty
	Reason      string `json:"reason,omitempty"`
	Coordinated bool   `json:"coordinated"`
	verb.Data
	Sites []siteJSON `json:"sites"`
}

type siteJSON struct {
	Name string `json:"name"`
	Vote string `json:"vote"` // commit, abort, or empty
	Dead bool   `json:"dead,omitempty"`
	Done bool   `json:"done"`
}

func (v *txStatusVerb) inJSON(s recipes.TransactionStatus) statusJSON {
	j := statusJSON{Path: v.Path, Variant: string(s.Variant), Coordinated: s.Coordinated, Data: verb.InJSON(s.Payload)}
	if d := s.Decision; d != nil {
		j.Decision, j.Reason = decisionWord(*d), d.Reason
	}
	j.Sites = verb.List(s.Sites, func(site recipes.SiteStatus) siteJSON {
		return siteJSON{site.Name, string(site.Vote), site.Dead, site.Done}
	})
	return j
}

func txTable(out io.Writer, s recipes.TransactionStatus) {
	decision, coordinator := "none yet", "none"
	if d := s.Decision; d != nil {
		decision = inWords(*d)
	}
	if s.Coordinated {
		coordinator = "at work"
	}
	verb.Row(out, "variant      %s", s.Variant)
	verb.Row(out, "data         %s", verb.Printable(s.Payload))
	verb.Row(out, "coordinator  %s", coordinator)
	verb.Row(out, "decision     %s", decision)
	fmt.Fprintln(out)
	verb.Table("SITE\tVOTE\tDONE", s.Sites, func(site recipes.SiteStatus) []string {
		vote, done := cmp.Or(string(site.Vote), "none"), "no"
		if site.Dead {
			vote = "dead"
		}
		if site.Done {
			done = "yes"
		}
		return []string{site.Name, vote, done}
	})(out)
}
