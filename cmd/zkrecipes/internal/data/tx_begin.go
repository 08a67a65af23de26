package data

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var txBegin = verb.Verb{
	Name: "tx begin", Usage: "-sites SITE,... [flags] PATH", New: verb.New[txBeginVerb], ExitCodeOnly: true,
	Synopsis: "Begin a two-phase commit, and wait for the decision",
	Help: `Begins a transaction at PATH, in which each site votes with zkrecipes tx vote. It waits
for the decision and shows it.

    zkrecipes tx begin -sites db,cache -data 'schema 7' -timeout 1m /deploy/7
    zkrecipes tx begin -sites db,cache -detach /deploy/7

The decision is commit if all sites have voted commit. It is abort as soon as one site
has voted abort. It is kept until every site has called tx done.

All sites wait for a site that does not vote. When -timeout is over, or after a signal,
zkrecipes aborts the transaction unless there is a decision. With -detach, or if
zkrecipes is killed, a site that waits in tx vote makes the decision.

The variants differ in which process watches the votes:

    coordinator-only  this process watches the votes
    all-watch         each site watches the votes of all sites; the cost grows with
                      the number of sites
    own-nodes         tx vote must run until the decision: if a site dies, that is
                      noticed, and the transaction is aborted

` + txHelp,
}

type txBeginVerb struct {
	txPath
	sites   []string
	list    string
	data    string
	variant string
	timeout time.Duration
	detach  bool
}

func (v *txBeginVerb) Flags(f *flag.FlagSet) {
	f.StringVar(&v.list, "sites", "", "`names` of the sites, separated by commas; required")
	f.StringVar(&v.data, "data", "", "`text` for the sites, which tx status shows; - reads it from stdin")
	f.StringVar(&v.variant, "variant", string(recipes.CoordinatorOnly), "the `variant`: which process watches the votes")
	verb.DurationVar(f, &v.timeout, "timeout", 0, "abort if there is no decision within this `duration`, including the time to connect;\n0 waits for ever")
	f.BoolVar(&v.detach, "detach", false, "do not wait: a site that waits makes the decision")
}

func (v *txBeginVerb) Arguments(args []string) error {
	if v.list == "" {
		return errors.New("-sites is missing: the names of the sites that vote")
	}
	v.sites = strings.Split(v.list, ",")
	_, err := recipes.Variant(v.variant).Normalize()
	return cmp.Or(v.OnePath.Arguments(args), recipes.ValidateSites(v.sites), err)
}

func (v *txBeginVerb) Run(ctx context.Context, t *verb.Tool) error {
	payload, err := verb.Payload(v.data) // before a session is open
	if err != nil {
		return err
	}
	return v.wait(ctx, t, v.timeout, v.detach, func(ctx, bounded context.Context, s recipes.Client) error {
		tx, err := s.Transaction(v.Path, recipes.TransactionConfig{Variant: recipes.Variant(v.variant)})
		if err != nil {
			return err
		}
		if err := v.begin(ctx, tx, payload); err != nil {
			return v.explain(err)
		}
		if v.detach {
			return t.Done(verb.Object{"path", v.Path, "begun", true})
		}
		d, err := v.coordinate(ctx, bounded, tx)
		if err != nil {
			return err
		}
		return v.decided(t, d)
	})
}

// begin begins the transaction. A signal ends the call only after CloseTimeout. If it ended
// the call at once, zkrecipes would not know whether the transaction exists, and its sites
// could wait for a decision.
func (v *txBeginVerb) begin(ctx context.Context, tx recipes.Transaction, payload []byte) error {
	beginning, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(verb.CloseTimeout, cancel) })()
	return tx.Begin(beginning, payload, v.sites...)
}

// coordinate waits for the decision. When its time is over it aborts the transaction, because
// otherwise the sites could wait for ever.
func (v *txBeginVerb) coordinate(ctx, waiting context.Context, tx recipes.Transaction) (recipes.Decision, error) {
	d, err := tx.Coordinate(waiting)
	if !ended(waiting, err) {
		return d, err
	}
	reason := fmt.Sprintf("no decision within %v", v.timeout)
	if ctx.Err() != nil {
		reason = "the coordinator was interrupted"
	}
	ending, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	return tx.Abort(ending, reason)
}
