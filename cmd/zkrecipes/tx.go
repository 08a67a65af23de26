package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// txPath is what the verbs of transactions have in common.
type txPath struct{ onePath }

const txHelp = `Exit code: 0 for commit, 5 for abort. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration, or the transaction has no such site
    3    there is no transaction, or all its sites are done with it
    4    something forbids it: another transaction, another vote, a dead site
    6    unknown: the answer was lost; zkrecipes tx status tells
    123  the session was lost
    124  the time is over, and ZooKeeper answers
    128  and n: signal n came before that`

// decisionJSON is a decision in JSON.
type decisionJSON struct {
	Path     string `json:"path"`
	Decision string `json:"decision"` // commit, abort
	Reason   string `json:"reason,omitempty"`
}

// decided shows the decision, and makes an abort the exit code.
func (p txPath) decided(out *output, d recipes.Decision) error {
	err := out.result(decisionJSON{p.path, decisionWord(d), d.Reason}, func(w io.Writer) { fmt.Fprintln(w, inWords(d)) })
	if err == nil && !d.Commit {
		return exitError{code: exitAborted} // stdout has said it
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
	return fmt.Sprintf("%s (%s)", decisionWord(d), printable([]byte(d.Reason)))
}

// wait runs f with a session. ctx ends with a signal, and bounded also when -timeout is
// over. The session is not replaced: with the variant own-nodes it is the site.
func (p txPath) wait(ctx context.Context, t *tool, out *output, timeout time.Duration, try bool,
	f func(ctx, bounded context.Context, s recipes.Session) error) error {
	r, ctx := job.NewRelay(ctx)
	defer r.Stop()
	type opened struct {
		bounded context.Context
		session recipes.Session
	}
	return withCode(await(ctx, t, out, patience{timeout: timeout, try: try},
		func(bounded context.Context, s recipes.Session) (opened, error) { return opened{bounded, s}, nil },
		func(o opened) error { return f(ctx, o.bounded, o.session) }))
}

// ended reports whether a wait failed because its time was over or a signal came.
// The plugin has the deadline too, and may notice it first.
func ended(waiting context.Context, err error) bool {
	return err != nil && (waiting.Err() != nil || errors.Is(err, context.DeadlineExceeded))
}

// explain says in an error what a person can do about it.
func (p txPath) explain(err error) error {
	switch {
	case errors.Is(err, recipes.ErrNodeExists):
		return fmt.Errorf("%w; zkrecipes tx status %s shows what has begun there", err, p.path)
	case errors.Is(err, recipes.ErrRemoved):
		return fmt.Errorf("%w; zkrecipes tx abort %s ends the transaction", err, p.path)
	case errors.Is(err, recipes.ErrUnknownSite), errors.Is(err, recipes.ErrVoted), errors.Is(err, recipes.ErrUndecided):
		return fmt.Errorf("%w; zkrecipes tx status %s shows the sites", err, p.path)
	}
	return err
}
