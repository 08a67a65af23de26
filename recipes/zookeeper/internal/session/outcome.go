package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// ready waits for a connection later than the n-th, and returns its number. Nothing is
// sent, the outcome of which could not be known, when ctx has ended.
func (s *Session) ready(ctx context.Context, what string, n int) (connection int, err error) {
	if connection, _, err = s.connectedAfter(ctx, n); err == nil && ctx.Err() != nil {
		err = s.Interrupted(what, ctx)
	}
	return connection, err
}

// unknown is the error of a write that was sent and has not been answered: because
// of what has ended, or else err.
func (s *Session) unknown(ctx context.Context, what string, err error) error {
	return fmt.Errorf("%s: %w: %w", what, recipes.ErrUnknownOutcome, cmp.Or(s.reason(ctx), err))
}

// reason is what keeps a call from going on. ctx may be the session's own, and is
// asked first: whoever finds that one ended finds the loss.
func (s *Session) reason(ctx context.Context) error {
	err := ctx.Err()
	return cmp.Or(s.Err(), err)
}

// Unsettled reports whether err leaves the outcome of a write unknown, while the
// session lives and ctx has not ended: the outcome can be found out, or the write
// sent again. Where it reports false, Because says what to tell the caller.
func (s *Session) Unsettled(ctx context.Context, err error) bool {
	return errors.Is(err, recipes.ErrUnknownOutcome) && s.reason(ctx) == nil
}

// Because adds to an error that leaves an outcome unknown why nobody finds out:
// the session was lost, or ctx has ended. The error of the request alone may name
// neither, for the connection is lost first, and either comes a moment later. Any
// other error is returned as it is.
func (s *Session) Because(ctx context.Context, err error) error {
	reason := s.reason(ctx)
	if reason == nil || errors.Is(err, reason) || !errors.Is(err, recipes.ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w: %w", err, reason)
}

// answer says of the server's answer what it is to. One that is malformed, and no error, is
// ErrInternal.
func answer(what, path string, err error) error {
	var code conn.Code
	if !errors.As(err, &code) {
		err = fmt.Errorf("%w: the server answered: %v", recipes.ErrInternal, err)
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// unavailable says that ctx ended while no server could be reached.
func (s *Session) unavailable(what string, ctx context.Context) error {
	if last := s.wire.LastError(); last != nil {
		return fmt.Errorf("%s: %w (last attempt: %v): %w", what, recipes.ErrUnavailable, last, ctx.Err())
	}
	return fmt.Errorf("%s: %w (no attempt has ended yet, of %s): %w", what, recipes.ErrUnavailable, strings.Join(s.wire.Servers, ","), ctx.Err())
}

// Interrupted is the error of something that ctx has ended: plainly that, if the
// connection is up, or else one that matches ErrUnavailable too.
func (s *Session) Interrupted(what string, ctx context.Context) error {
	if err := s.Err(); err != nil {
		return err
	}
	if now, _, _ := s.status.Get(); now.connected {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return s.unavailable(what, ctx)
}
