package main

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// once runs f, one request that does not wait for others, with a session. It gives
// errors their exit codes. f has DefaultOpenTimeout, and opening the session -connect-timeout.
func (t *tool) once(ctx context.Context, out *output, f func(context.Context, recipes.Session) error) error {
	return withCode(t.withSession(ctx, out, func(s recipes.Session) error {
		ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
		defer cancel()
		err := f(ctx, s)
		if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, recipes.ErrUnknownOutcome) && s.State() != recipes.Connected {
			return ownError{patience{}.unanswered(err)}
		}
		return err
	}))
}

// onceCodes are the exit codes of such a verb.
const onceCodes = `Exit code: 0 if it was done. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    3    what was asked for is not there
    4    it belongs to somebody else, or has changed; nothing was done
    6    unknown: the answer was lost; look before you repeat it
    123  the session was lost
    124  the time is over, and ZooKeeper answers`

// withCode gives an error of the contract its exit code. An unknown outcome comes
// first: it says more than the loss of the session that has caused it.
func withCode(err error) error {
	var already exitError
	var own ownError
	if err == nil || errors.As(err, &already) || errors.As(err, &own) {
		return err
	}
	for _, kind := range []struct {
		code int
		is   []error
	}{
		{exitUnknown, []error{recipes.ErrUnknownOutcome}},
		{exitUsage, []error{recipes.ErrInvalid, recipes.ErrUnknownSite}},
		{exitLost, []error{recipes.ErrSessionLost}},
		{exitAbsent, []error{recipes.ErrNoNode, recipes.ErrNoTransaction}},
		{exitRefused, []error{
			recipes.ErrNodeExists, recipes.ErrBadVersion, recipes.ErrNotEmpty, recipes.ErrVoted,
			recipes.ErrUndecided, recipes.ErrNotHeld,
		}},
		{exitOK, []error{recipes.ErrUnavailable}}, // which is what the verb says
		{exitTimeout, []error{context.DeadlineExceeded}},
	} {
		for _, sentinel := range kind.is {
			switch {
			case !errors.Is(err, sentinel):
			case kind.code == exitOK:
				return err
			default:
				return exitError{kind.code, err}
			}
		}
	}
	return err
}
