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

// txPath is embedded by the verbs of transactions.
type txPath struct{ verb.OnePath }

const txHelp = `Exit code: 0 for commit, 5 for abort. Otherwise:

    1      zkrecipes failed, for example to reach ZooKeeper
    2      wrong usage or configuration, or the transaction has no such site
    3      there is no transaction, or all its sites are done
    4      refused: there is another transaction or another vote, or the site is dead
    6      unknown: the answer was lost; zkrecipes tx status shows the state
    123    the session was lost
    124    the time is over, although ZooKeeper answers
    128+n  signal n came before the decision`

func (p *txPath) open(s recipes.Client) (recipes.Transaction, error) {
	return s.Transaction(p.Path, recipes.TransactionConfig{})
}

// txSite is txPath for verbs with the argument SITE.
type txSite struct {
	txPath
	site string
}

func (p *txSite) take(path, site string) error {
	p.Path, p.site = path, site
	return cmp.Or(recipes.ValidatePath(path), recipes.ValidateSites([]string{site}))
}

// decided shows the decision. For an abort it returns the exit code exit.Aborted.
func (p *txPath) decided(t *verb.Tool, d recipes.Decision) error {
	shown := verb.Object{"path", p.Path, "decision", decisionWord(d)} // commit, abort
	if d.Reason != "" {
		shown = append(shown, "reason", d.Reason)
	}
	err := t.Say(shown, inWords(d))
	if err == nil && !d.Commit {
		return exit.Silently(exit.Aborted)
	}
	return err
}

func decisionWord(d recipes.Decision) string {
	if d.Commit {
		return string(recipes.VoteCommit)
	}
	return string(recipes.VoteAbort)
}

// inWords returns the decision as text. Scripts read its first word.
func inWords(d recipes.Decision) string {
	if d.Reason == "" {
		return decisionWord(d)
	}
	return fmt.Sprintf("%s (%s)", decisionWord(d), verb.Printable([]byte(d.Reason)))
}

// wait runs f with a session. A signal ends ctx; the signal and -timeout end bounded. The
// session is not replaced once f runs, because with the variant own-nodes it is the site.
func (p *txPath) wait(ctx context.Context, t *verb.Tool, timeout time.Duration, try bool,
	f func(ctx, bounded context.Context, s recipes.Client) error) error {
	r, ctx := job.NewRelay(ctx)
	defer r.Stop()
	var bounded context.Context
	return exit.Coded(verb.Await(ctx, t, verb.Patience{Timeout: timeout, Try: try},
		func(ctx context.Context, s recipes.Client) (recipes.Client, error) { bounded = ctx; return s, nil },
		func(s recipes.Client) error { return f(ctx, bounded, s) }))
}

// ended reports whether a wait failed because of its timeout or a signal. The plugin has the
// same deadline, and may notice it first.
func ended(waiting context.Context, err error) bool {
	return err != nil && (waiting.Err() != nil || errors.Is(err, context.DeadlineExceeded))
}

// explain adds advice to an error.
func (p *txPath) explain(err error) error {
	switch {
	case errors.Is(err, recipes.ErrNodeExists):
		return fmt.Errorf("%w; zkrecipes tx status %s shows the transaction there", err, p.Path)
	case errors.Is(err, recipes.ErrRemoved):
		return fmt.Errorf("%w; zkrecipes tx abort %s ends the transaction", err, p.Path)
	case errors.Is(err, recipes.ErrUnknownSite), errors.Is(err, recipes.ErrVoted), errors.Is(err, recipes.ErrUndecided):
		return fmt.Errorf("%w; zkrecipes tx status %s shows the sites", err, p.Path)
	}
	return err
}
