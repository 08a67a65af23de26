//go:build unix

package host_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func transactionAt(t *testing.T, s recipes.Recipes, path string, variant recipes.Variant) recipes.Transaction {
	t.Helper()
	return must.Get(s.Transaction(path, recipes.TransactionConfig{Variant: variant}))(t)
}

// parties are the coordinator and a site in one session, and a site in another one.
type parties struct {
	*surviving
	variant      recipes.Variant
	tx, other    recipes.Transaction
	mine, theirs recipes.Site
	decided      []<-chan error
}

// survived checks that the other session notices nothing.
func (p *parties) survived(what string) {
	p.Helper()
	status, err := p.other.Status(ctx(p))
	if err != nil {
		p.Fatalf("%s, %s: %v", p.variant, what, err)
	}
	if status.Coordinated != (p.variant != recipes.AllWatch) {
		p.Errorf("%s, %s: there is no coordinator", p.variant, what)
	}
	for _, s := range status.Sites {
		if s.Dead {
			p.Errorf("%s, %s: site %s is dead", p.variant, what, s.Name)
		}
	}
}

func (p *parties) await(who string, wait func(context.Context) (recipes.Decision, error)) {
	p.decided = append(p.decided, begin(func() error {
		d, err := wait(ctx(p))
		if err != nil || !d.Commit {
			return fmt.Errorf("%s, %s got %+v: %v", p.variant, who, d, err)
		}
		return nil
	}))
}

// TestATransactionSurvivesItsPlugin kills the plugin after each step, and while the session waits.
// Both sites get the decision to commit. There is a real server if one was found.
func TestATransactionSurvivesItsPlugin(t *testing.T) {
	t.Parallel()
	v, run := surviveReal(t)
	var all []*parties
	for _, variant := range recipes.Variants() {
		path := "/" + string(variant) + run
		all = append(all, &parties{surviving: v, variant: variant, tx: transactionAt(t, v.session, path, variant), other: transactionAt(t, v.rival, path, variant)})
	}
	for _, step := range []struct {
		what string
		make func(*parties) error
	}{
		{"begun", func(p *parties) error { return p.tx.Begin(ctx(t), []byte("payload"), "mine", "theirs") }},
		{"joined", func(p *parties) (err error) {
			p.mine = must.Get(p.tx.Join(ctx(t), "mine"))(t)
			p.theirs, err = p.other.Join(ctx(t), "theirs")
			return err
		}},
		{"voted", func(p *parties) error { return p.mine.Vote(ctx(t), recipes.VoteCommit) }},
		{"waiting", func(p *parties) error {
			p.await("coordinator", p.tx.Coordinate)
			p.await("mine", p.mine.Wait)
			p.await("theirs", p.theirs.Wait)
			_, err := v.session.Stats(ctx(t)) // most likely sent after those calls
			return err
		}},
		{"waiting again", func(*parties) error { return nil }},
	} {
		for _, p := range all {
			if err := step.make(p); err != nil {
				t.Fatalf("%s, %s: %v", p.variant, step.what, err)
			}
		}
		v.kill()
		for _, p := range all {
			p.survived(step.what)
		}
	}
	for _, p := range all {
		must.Do(t, p.theirs.Vote(ctx(t), recipes.VoteCommit))
		must.Report(t, errors.Join(<-p.decided[0], <-p.decided[1], <-p.decided[2]))
	}
	v.kill()
	for _, p := range all {
		must.Report(t, p.mine.Done(ctx(t)))
	}
	v.kill()
	for _, p := range all {
		if d, err := p.mine.Wait(ctx(t)); err == nil && !d.Commit {
			t.Errorf("%s: in the end it got %+v", p.variant, d)
		}
		must.Report(t, errors.Join(p.mine.Done(ctx(t)), p.theirs.Done(ctx(t)), p.mine.Done(ctx(t))))
		if _, err := p.other.Status(ctx(t)); !errors.Is(err, recipes.ErrNoTransaction) {
			t.Errorf("%s: the transaction still exists: %v", p.variant, err)
		}
	}
	v.kill()
	for _, p := range all {
		if err := p.mine.Done(ctx(t)); err != nil {
			t.Errorf("%s: done again, in another plugin: %v", p.variant, err)
		}
	}
}
