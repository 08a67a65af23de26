package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// txPath is what the verbs of transactions have in common.
type txPath struct{ verb.OnePath }

const txHelp = `Exit code: 0 for commit, 5 for abort. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration, or the transaction has no such site
    3    there is no transaction, or all its sites are done with it
    4    something forbids it: another transaction, another vote, a dead site
    6    unknown: the answer was lost; zkrecipes tx status tells
    123  the session was lost
    124  the time is over, and ZooKeeper answers
    128  and n: signal n came before that`

func (p *txPath) open(s recipes.Client) (recipes.Transaction, error) {
	return s.Transaction(p.Path, recipes.TransactionConfig{})
}

// txSite is txPath for verbs that take a SITE too.
type txSite struct {
	txPath
	site string
}

func (p *txSite) take(path, site string) error {
	p.Path, p.site = path, site
	return cmp.Or(recipes.ValidatePath(path), recipes.ValidateSites([]string{site}))
}

// decided shows the decision, and makes an abort the exit code.
func (p *txPath) decided(t *verb.Tool, d recipes.Decision) error {
	shown := verb.Object{"path", p.Path, "decision", decisionWord(d)} // commit, abort
	if d.Reason != "" {
		shown = append(shown, "reason", d.Reason)
	}
	err := t.Say(shown, inWords(d))
	if err == nil && !d.Commit {
		return exit.Silently(exit.Aborted) // stdout has said it
	}
	return err
}

func decisionWord(d recipes.Decision) string {
	if d.Commit {
		return string(recipes.VoteCommit)
	}
	return string(recipes.VoteAbort)
}

// inWords is a decision for people; the first word is for scripts.
func inWords(d recipes.Decision) string {
	if d.Reason == "" {
		return decisionWord(d)
	}
	return fmt.Sprintf("%s (%s)", decisionWord(d), verb.Printable([]byte(d.Reason)))
}

// wait runs f with a session. ctx ends with a signal, and bounded also when -timeout is
// over. The session is not replaced: with the variant own-nodes it is the site.
func (p *txPath) wait(ctx context.Context, t *verb.Tool, timeout time.Duration, try bool,
	f func(ctx, bounded context.Context, s recipes.Client) error) error {
	r, ctx := job.NewRelay(ctx)
	defer r.Stop()
	var bounded context.Context
	return exit.Coded(verb.Await(ctx, t, verb.Patience{Timeout: timeout, Try: try},
		func(ctx context.Context, s recipes.Client) (recipes.Client, error) { bounded = ctx; return s, nil },
		func(s recipes.Client) error { return f(ctx, bounded, s) }))
}

// ended reports whether a wait failed because its time was over or a signal came.
// The plugin has the deadline too, and may notice it first.
func ended(waiting context.Context, err error) bool {
	return err != nil && (waiting.Err() != nil || errors.Is(err, context.DeadlineExceeded))
}

// explain says in an error what a person can do about it.
func (p *txPath) explain(err error) error {
	switch {
	case errors.Is(err, recipes.ErrNodeExists):
		return fmt.Errorf("%w; zkrecipes tx status %s shows what has begun there", err, p.Path)
	case errors.Is(err, recipes.ErrRemoved):
		return fmt.Errorf("%w; zkrecipes tx abort %s ends the transaction", err, p.Path)
	case errors.Is(err, recipes.ErrUnknownSite), errors.Is(err, recipes.ErrVoted), errors.Is(err, recipes.ErrUndecided):
		return fmt.Errorf("%w; zkrecipes tx status %s shows the sites", err, p.Path)
	}
	return err
}
