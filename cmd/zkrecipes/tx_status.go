package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// txStatusVerb shows a transaction.
type txStatusVerb struct{ txPath }

func (v *txStatusVerb) describe() doc {
	return doc{
		usage:    "tx status [flags] PATH",
		synopsis: "Show the votes and the decision of a two-phase commit",
		about: `
Shows the transaction at PATH: its data, its decision, whether a coordinator is at work,
and the vote of each site. The answer may be outdated when you read it.
`,
		examples: [2]string{
			"zkrecipes tx status /deploy/7",
			"zkrecipes tx status -format=json /deploy/7",
		},
		rules: `
DONE says whether the site has acted on the decision.

` + onceCodes,
	}
}

func (v *txStatusVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		tx, err := s.Transaction(v.path, recipes.TransactionConfig{})
		if err != nil {
			return err
		}
		status, err := tx.Status(ctx)
		if err != nil {
			return err
		}
		return out.result(v.inJSON(status), func(w io.Writer) { v.table(w, status) })
	})
}

// statusJSON is a transaction in JSON.
type statusJSON struct {
	Path        string     `json:"path"`
	Variant     string     `json:"variant"`
	Decision    string     `json:"decision"` // commit, abort, or empty
	Reason      string     `json:"reason,omitempty"`
	Coordinated bool       `json:"coordinated"`
	Data        string     `json:"data"`
	DataBase64  []byte     `json:"data_base64,omitempty"` // of data that are no text
	Sites       []siteJSON `json:"sites"`
}

type siteJSON struct {
	Name string `json:"name"`
	Vote string `json:"vote"` // commit, abort, or empty
	Dead bool   `json:"dead,omitempty"`
	Done bool   `json:"done"`
}

func (v *txStatusVerb) inJSON(s recipes.TransactionStatus) statusJSON {
	j := statusJSON{Path: v.path, Variant: string(s.Variant), Coordinated: s.Coordinated, Sites: []siteJSON{}}
	j.Data, j.DataBase64 = inJSON(s.Payload)
	if d := s.Decision; d != nil {
		j.Decision, j.Reason = decisionWord(*d), d.Reason
	}
	for _, site := range s.Sites {
		j.Sites = append(j.Sites, siteJSON{site.Name, string(site.Vote), site.Dead, site.Done})
	}
	return j
}

func (v *txStatusVerb) table(out io.Writer, s recipes.TransactionStatus) {
	decision, coordinator := "none yet", "none"
	if d := s.Decision; d != nil {
		decision = inWords(*d)
	}
	if s.Coordinated {
		coordinator = "at work"
	}
	fmt.Fprintf(out, "variant      %s\ndata         %s\ncoordinator  %s\ndecision     %s\n\n", s.Variant, printable(s.Payload), coordinator, decision)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SITE\tVOTE\tDONE")
	for _, site := range s.Sites {
		vote, done := cmp.Or(string(site.Vote), "none"), "no"
		if site.Dead {
			vote = "dead"
		}
		if site.Done {
			done = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", site.Name, vote, done)
	}
	_ = w.Flush()
}
