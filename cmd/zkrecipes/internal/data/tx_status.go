package data

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var txStatus = verb.Verb{
	Name: "tx status", Usage: "[flags] PATH", New: verb.New[txStatusVerb],
	Synopsis: "Show the votes and the decision of a two-phase commit",
	Help: `Shows the transaction at PATH: its data, its decision, whether a coordinator is at work,
and the vote of each site. The answer may be outdated when you read it.

    zkrecipes tx status /deploy/7
    zkrecipes tx status -format=json /deploy/7

DONE says whether the site has acted on the decision.

` + verb.OnceCodes,
}

type txStatusVerb struct{ txPath }

func (v *txStatusVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Ask(ctx, t, v.open, recipes.Transaction.Status, func(status recipes.TransactionStatus) error {
		return t.Result(v.inJSON(status), func(w io.Writer) { txTable(w, status) })
	})
}

// statusJSON is a transaction in JSON.
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
	fmt.Fprintf(out, "variant      %s\ndata         %s\ncoordinator  %s\ndecision     %s\n\n", s.Variant, verb.Printable(s.Payload), coordinator, decision)
	verb.Table("SITE\tVOTE\tDONE", s.Sites, func(site recipes.SiteStatus) string {
		vote, done := cmp.Or(string(site.Vote), "none"), "no"
		if site.Dead {
			vote = "dead"
		}
		if site.Done {
			done = "yes"
		}
		return fmt.Sprintf("%s\t%s\t%s", site.Name, vote, done)
	})(out)
}
