package verb

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// OnceCodes are the exit codes of a verb that does not wait.
const OnceCodes = `Exit code: 0 if it was done. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    3    what was asked for is not there
    4    it belongs to somebody else, or has changed; nothing was done
    6    unknown: the answer was lost; look before you repeat it
    123  the session was lost
    124  the time is over, and ZooKeeper answers`

// Once opens a recipe in a session and runs f with it: a request that does not wait for
// others. It gives errors their exit codes. f has DefaultOpenTimeout, and opening the
// session -connect-timeout.
func Once[R any](ctx context.Context, t *Tool, open func(recipes.Session) (R, error), f func(context.Context, R) error) error {
	return exit.Coded(once(ctx, t, open, f))
}

func once[R any](ctx context.Context, t *Tool, open func(recipes.Session) (R, error), f func(context.Context, R) error) (err error) {
	c := &connection{Tool: t, timeout: t.connectTimeout}
	defer func() { c.end(err) }() // closes the session too
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	r, err := open(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
	defer cancel()
	err = f(ctx, r)
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, recipes.ErrUnknownOutcome) && s.State() != recipes.Connected {
		return exit.OwnError{Err: Patience{}.unanswered(err)}
	}
	return err
}

// Ask is Once for what get returns, and show shows.
func Ask[R, T any](ctx context.Context, t *Tool, open func(recipes.Session) (R, error), get func(R, context.Context) (T, error), show func(T) error) error {
	return Once(ctx, t, open, func(ctx context.Context, r R) error {
		got, err := get(r, ctx)
		if err != nil {
			return Foreign(err)
		}
		return show(got)
	})
}

// Itself opens no recipe.
func Itself(s recipes.Session) (recipes.Session, error) { return s, nil }
