package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// txBeginVerb begins a transaction and coordinates it.
type txBeginVerb struct {
	exitCodeOnly
	txPath
	sites   []string
	list    string
	data    string
	variant string
	timeout time.Duration
	detach  bool
}

func (v *txBeginVerb) describe() doc {
	return doc{
		usage:    "tx begin -sites SITE,... [flags] PATH",
		synopsis: "Begin a two-phase commit, and wait for the decision",
		about: `
Begins a transaction at PATH, in which each of the sites votes with zkrecipes tx vote.
It waits for the decision and shows it.
`,
		examples: [2]string{
			"zkrecipes tx begin -sites db,cache -data 'schema 7' -timeout 1m /deploy/7",
			"zkrecipes tx begin -sites db,cache -detach /deploy/7",
		},
		rules: `
The decision is commit if all sites have voted to commit. It is abort as soon as one
has not. It is kept until every site has said tx done.

All sites wait for one that does not vote. -timeout aborts then, and so does a signal,
unless there is a decision. With -detach, or if zkrecipes is killed, a site that waits
in tx vote makes the decision.

The variants differ in who watches whom:

    coordinator-only  this process watches the sites
    all-watch         the sites watch each other, at a cost that grows with them
    own-nodes         tx vote has to run until the decision: a site that dies is
                      seen, and the transaction is aborted

` + txHelp,
	}
}

func (v *txBeginVerb) flags(f *flag.FlagSet) {
	f.StringVar(&v.list, "sites", "", "`names` of the sites, separated by commas; required")
	f.StringVar(&v.data, "data", "", "`text` for the sites, which tx status shows them; - takes it from stdin")
	f.StringVar(&v.variant, "variant", string(recipes.DefaultVariant), "`variant`, which says who watches whom")
	durationVar(f, &v.timeout, "timeout", 0, "abort if there is no decision within this `duration`, connecting included; 0 waits\nfor ever")
	f.BoolVar(&v.detach, "detach", false, "do not wait: a waiting site makes the decision")
}

func (v *txBeginVerb) arguments(args []string) error {
	switch {
	case len(args) != 1:
		return errors.New("give one PATH, after the flags")
	case v.list == "":
		return errors.New("-sites is missing: the names of the sites that vote")
	case v.timeout < 0:
		return errors.New("-timeout must not be negative")
	}
	v.path, v.sites = args[0], strings.Split(v.list, ",")
	_, err := recipes.ParseVariant(v.variant)
	return cmp.Or(recipes.ValidatePath(v.path), recipes.ValidateSites(v.sites), err)
}

func (v *txBeginVerb) run(ctx context.Context, t *tool, out *output) error {
	payload := []byte(v.data)
	if v.data == "-" {
		var err error
		if payload, err = readAll(os.Stdin); err != nil { // before a session waits for it
			return err
		}
	}
	return v.wait(ctx, t, out, v.timeout, v.detach, func(ctx, bounded context.Context, s recipes.Session) error {
		tx, err := s.Transaction(v.path, recipes.TransactionConfig{Variant: recipes.Variant(v.variant)})
		if err != nil {
			return err
		}
		if err := v.begin(ctx, tx, payload); err != nil {
			return v.explain(err)
		}
		if v.detach {
			return out.done(struct {
				Path  string `json:"path"`
				Begun bool   `json:"begun"`
			}{v.path, true})
		}
		d, err := v.coordinate(ctx, bounded, tx)
		if err != nil {
			return err
		}
		return v.decided(out, d)
	})
}

// begin begins the transaction. A signal does not end that at once: whether it has
// begun would not be known, and if it has, the sites would wait for a decision.
func (v *txBeginVerb) begin(ctx context.Context, tx recipes.Transaction, payload []byte) error {
	beginning, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(closeTimeout, cancel) })()
	return tx.Begin(beginning, payload, v.sites...)
}

// coordinate waits for the decision, and makes it if it may not wait any longer:
// a coordinator that just left would have the sites wait, perhaps for nobody.
func (v *txBeginVerb) coordinate(ctx, waiting context.Context, tx recipes.Transaction) (recipes.Decision, error) {
	d, err := tx.Coordinate(waiting)
	if !ended(waiting, err) {
		return d, err
	}
	reason := fmt.Sprintf("no decision in %v", v.timeout)
	if ctx.Err() != nil {
		reason = "the coordinator was interrupted"
	}
	ending, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return tx.Abort(ending, reason)
}
