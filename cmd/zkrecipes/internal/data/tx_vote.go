package data

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var txVote = verb.Verb{
	Name: "tx vote", Usage: "[flags] PATH SITE commit|abort", New: verb.New[txVoteVerb], ExitCodeOnly: true,
	Synopsis: "Vote in a two-phase commit, and wait for the decision",
	Help: `Votes as SITE in the transaction at PATH. Then it waits for the decision and shows it.

    zkrecipes tx vote /deploy/7 db commit
    zkrecipes tx vote -timeout 1m /deploy/7 db abort

A site that votes commit must be able to commit, and must not act before the decision.
When it has acted, it calls tx done. In a script:

    zkrecipes tx vote /deploy/7 db commit
    case $? in
    0) ./apply ;;
    5) ./undo ;;
    *) exit 1 ;; # no decision: run the same command again
    esac
    zkrecipes tx done /deploy/7 db

A vote cannot be changed. To give the same vote again is not an error, and shows the
decision: a restarted site does that. With the variant own-nodes, a site must stay in tx
vote until the decision. If tx vote ends before, the transaction is aborted.

` + txHelp,
}

type txVoteVerb struct {
	txSite
	vote    recipes.Vote
	timeout time.Duration
}

func (v *txVoteVerb) Flags(f *flag.FlagSet) {
	verb.DurationVar(f, &v.timeout, "timeout", 0, "stop waiting for the decision after this `duration`, including the time to connect; 0\nwaits for ever")
}

func (v *txVoteVerb) Arguments(args []string) error {
	if len(args) != 3 {
		return errors.New("give PATH, SITE and commit or abort, after the flags")
	}
	v.vote = recipes.Vote(args[2])
	return cmp.Or(v.take(args[0], args[1]), v.vote.Validate())
}

func (v *txVoteVerb) Run(ctx context.Context, t *verb.Tool) error {
	return v.wait(ctx, t, v.timeout, false, func(ctx, waiting context.Context, s recipes.Client) error {
		tx, err := v.open(s)
		if err != nil {
			return err
		}
		site, err := tx.Join(ctx, v.site)
		if err != nil {
			return v.explain(err)
		}
		if err := site.Vote(ctx, v.vote); err != nil {
			return v.explain(err)
		}
		d, err := site.Wait(waiting)
		if err == nil {
			return v.decided(t, d)
		}
		if ended(waiting, err) {
			err = fmt.Errorf("%w; %s", err, v.advice(tx))
		}
		return err
	})
}

// advice returns what happens to the vote now that the site no longer waits.
func (v *txVoteVerb) advice(tx recipes.Transaction) string {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	if status, err := tx.Status(ctx); err == nil && status.Variant == recipes.OwnNodes {
		return "the site's own node is deleted now: that aborts the transaction, unless there is a decision"
	}
	return fmt.Sprintf("the vote is kept: the same command waits again, and zkrecipes tx status %s shows which votes are missing", v.Path)
}
