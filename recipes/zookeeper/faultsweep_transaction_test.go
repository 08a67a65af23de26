package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// ballotBox is what a case of the transaction's sweep knows.
type ballotBox struct {
	other    recipes.Site        // the other session's site
	decision *recipes.Decision   // what the victim was told
	voted    bool                // the victim's vote is known to have been cast
	variant  recipes.Variant     // of the transaction
	all      recipes.Transaction // the other session's
}

// transactionSweep is a sweep over a transaction of two sites, v and o, that was
// begun by the other session, which has joined as o and voted.
func transactionSweep(name string, v recipes.Variant, vote recipes.Vote, act func(context.Context, recipes.Transaction, *ballotBox) error) sweep {
	b := &ballotBox{}
	return sweep{
		name: string(v) + "/" + name,
		prepare: func(st *stage) {
			*b = ballotBox{variant: v}
			b.all = must[recipes.Transaction](st.t)(st.other.Transaction(sweepPath, recipes.TransactionConfig{Variant: v}))
			if err := b.all.Begin(st.ctx, []byte("payload"), "v", "o"); err != nil {
				st.t.Fatal(err)
			}
			b.other = must[recipes.Site](st.t)(b.all.Join(st.ctx, "o"))
			if err := b.other.Vote(st.ctx, vote); err != nil {
				st.t.Fatal(err)
			}
		},
		act: func(ctx context.Context, st *stage) error {
			return act(ctx, must[recipes.Transaction](st.t)(st.victim.Transaction(sweepPath, recipes.TransactionConfig{})), b)
		},
		check: func(st *stage, err error) { b.finish(st, vote) },
		left:  func(string) bool { return false },
	}
}

// finish carries the transaction to its end without the victim, and checks that all
// sites were told the same decision.
func (b *ballotBox) finish(st *stage, vote recipes.Vote) {
	st.t.Helper()
	if b.decision == nil && !b.voted {
		// Nobody can wait for a site that has perhaps not voted.
		if _, err := b.all.Abort(st.ctx, "given up"); err != nil && !errors.Is(err, recipes.ErrNoTransaction) {
			st.t.Error(err)
		}
	}
	d, err := b.all.Coordinate(st.ctx)
	if errors.Is(err, recipes.ErrNoTransaction) {
		st.t.Fatalf("the transaction has gone, though the other site is not done")
	}
	if err != nil {
		st.t.Fatalf("the other could not finish: %v", err)
	}
	if b.decision != nil && *b.decision != d {
		st.t.Errorf("the victim was told %+v, the other %+v", *b.decision, d)
	}
	if d.Commit && vote == recipes.VoteAbort {
		st.t.Error("decided to commit against a vote")
	}
	if err := b.other.Done(st.ctx); err != nil {
		st.t.Error(err)
	}
	// The victim's site comes back in another session, or never was done.
	s := open(st.t, st.srv)
	tx := must[recipes.Transaction](st.t)(s.Transaction(sweepPath, recipes.TransactionConfig{}))
	again, err := tx.Join(st.ctx, "v")
	if errors.Is(err, recipes.ErrNoTransaction) {
		return // it was done before
	}
	if err != nil {
		st.t.Fatalf("the site cannot come back: %v", err)
	}
	if got, err := again.Wait(st.ctx); err != nil || got != d {
		st.t.Errorf("the site that came back was told %+v, %v; the other %+v", got, err, d)
	}
	if err := again.Done(st.ctx); err != nil {
		st.t.Error(err)
	}
	if slices.ContainsFunc(layout(st.srv, "/parent"), func(p string) bool { return strings.HasPrefix(p, "line/") }) {
		st.t.Errorf("all are done, and there is %q", layout(st.srv, "/parent"))
	}
}

func TestFaultSweepTransaction(t *testing.T) {
	asSite := func(ctx context.Context, tx recipes.Transaction, b *ballotBox) error {
		site, err := tx.Join(ctx, "v")
		if err != nil {
			return err
		}
		if err := site.Vote(ctx, recipes.VoteCommit); err != nil {
			return err
		}
		b.voted = true
		// The coordinator counts; in the sweep it is the other session.
		counted := make(chan error, 1)
		go func() { _, err := b.all.Coordinate(ctx); counted <- err }()
		d, err := site.Wait(ctx)
		countErr := <-counted
		if err != nil {
			return err
		}
		b.decision = &d
		if countErr != nil && ctx.Err() == nil {
			return countErr
		}
		return site.Done(ctx)
	}
	asCoordinator := func(ctx context.Context, tx recipes.Transaction, b *ballotBox) error {
		site, err := tx.Join(ctx, "v")
		if err != nil {
			return err
		}
		if err := site.Vote(ctx, recipes.VoteCommit); err != nil {
			return err
		}
		b.voted = true
		d, err := tx.Coordinate(ctx)
		if err != nil {
			return err
		}
		b.decision = &d
		return nil
	}
	aborts := func(ctx context.Context, tx recipes.Transaction, b *ballotBox) error {
		d, err := tx.Abort(ctx, "by the victim")
		if err != nil {
			return err
		}
		b.decision = &d
		return nil
	}
	var sweeps []sweep
	for _, v := range recipes.Variants() {
		sweeps = append(sweeps,
			transactionSweep("site", v, recipes.VoteCommit, asSite),
			transactionSweep("site against an abort", v, recipes.VoteAbort, asSite),
			transactionSweep("coordinator", v, recipes.VoteCommit, asCoordinator),
			transactionSweep("abort", v, recipes.VoteCommit, aborts),
			beginSweep(v),
		)
	}
	runSweeps(t, "transaction", sweeps)
}

// beginSweep is about a victim that begins: once, whatever happens.
func beginSweep(v recipes.Variant) sweep {
	return sweep{
		name: string(v) + "/begin",
		act: func(ctx context.Context, st *stage) error {
			tx := must[recipes.Transaction](st.t)(st.victim.Transaction(sweepPath, recipes.TransactionConfig{Variant: v}))
			return tx.Begin(ctx, []byte("payload"), "o")
		},
		check: func(st *stage, err error) {
			tx := must[recipes.Transaction](st.t)(st.other.Transaction(sweepPath, recipes.TransactionConfig{Variant: v}))
			site, joinErr := tx.Join(st.ctx, "o")
			switch {
			case errors.Is(joinErr, recipes.ErrNoTransaction):
				if err == nil {
					st.t.Error("it was begun, and is not there")
				}
				return
			case joinErr != nil:
				st.t.Fatal(joinErr)
			case err != nil && !errors.Is(err, recipes.ErrUnknownOutcome):
				st.t.Errorf("it is there, though Begin failed with %v", err)
			}
			if err := site.Vote(st.ctx, recipes.VoteCommit); err != nil {
				st.t.Fatal(err)
			}
			if d, err := tx.Coordinate(st.ctx); err != nil || !d.Commit {
				st.t.Errorf("decided %+v, %v", d, err)
			}
			if err := site.Done(st.ctx); err != nil {
				st.t.Error(err)
			}
		},
	}
}
