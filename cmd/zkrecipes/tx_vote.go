package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// txVoteVerb is a site of a transaction up to the decision.
type txVoteVerb struct {
	exitCodeOnly
	txPath
	site    string
	vote    recipes.Vote
	timeout time.Duration
}

func (v *txVoteVerb) describe() doc {
	return doc{
		usage:    "tx vote [flags] PATH SITE commit|abort",
		synopsis: "Vote in a two-phase commit, and wait for the decision",
		about: `
Votes as SITE in the transaction at PATH. It waits for the decision and shows it.
`,
		examples: [2]string{
			"zkrecipes tx vote /deploy/7 db commit",
			"zkrecipes tx vote -timeout 1m /deploy/7 db abort",
		},
		rules: `
A site that votes commit must be able to commit, and must not act before the decision.
When it has acted, it says tx done. In a script:

    zkrecipes tx vote /deploy/7 db commit
    case $? in
    0) ./apply ;;
    5) ./undo ;;
    *) exit 1 ;; # no decision: the same command asks again
    esac
    zkrecipes tx done /deploy/7 db

A vote cannot be changed. To give the same vote again is no error, and shows the
decision: so does a site that comes back. But with the variant own-nodes a site must
stay in tx vote: the transaction is aborted if that ends before the decision.

` + txHelp,
	}
}

func (v *txVoteVerb) flags(f *flag.FlagSet) {
	durationVar(f, &v.timeout, "timeout", 0, "stop waiting for the decision after this `duration`, connecting included; 0 waits\nfor ever")
}

func (v *txVoteVerb) arguments(args []string) error {
	switch {
	case len(args) != 3:
		return errors.New("give PATH, SITE and commit or abort, after the flags")
	case v.timeout < 0:
		return errors.New("-timeout must not be negative")
	}
	v.path, v.site, v.vote = args[0], args[1], recipes.Vote(args[2])
	return cmp.Or(recipes.ValidatePath(v.path), recipes.ValidateSites([]string{v.site}), v.vote.Validate())
}

func (v *txVoteVerb) run(ctx context.Context, t *tool, out *output) error {
	return v.wait(ctx, t, out, v.timeout, false, func(ctx, waiting context.Context, s recipes.Session) error {
		tx, err := s.Transaction(v.path, recipes.TransactionConfig{})
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
			return v.decided(out, d)
		}
		if ended(waiting, err) {
			err = fmt.Errorf("%w; %s", err, v.whatNow(tx))
		}
		return err
	})
}

// whatNow says what has become of a vote whose site does not wait any longer.
func (v *txVoteVerb) whatNow(tx recipes.Transaction) string {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if status, err := tx.Status(ctx); err == nil && status.Variant == recipes.OwnNodes {
		return "the site has its own node, which goes now: that aborts the transaction, unless there is a decision"
	}
	return fmt.Sprintf("the vote stands: the same command waits again, and zkrecipes tx status %s shows whose vote is missing", v.path)
}
