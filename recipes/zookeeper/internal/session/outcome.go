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

// reason returns why a call cannot continue, or nil. It reads ctx first, because ctx may be the
// session's: then Err is already set.
func (s *Session) reason(ctx context.Context) error {
	err := ctx.Err()
	return cmp.Or(s.Err(), err)
}

// Unsettled reports whether err leaves the outcome of a write unknown while the session lives
// and ctx is not done. Then the caller can find out the outcome, or send the write again. If
// Unsettled returns false, Because completes the error.
func (s *Session) Unsettled(ctx context.Context, err error) bool {
	return errors.Is(err, recipes.ErrUnknownOutcome) && s.reason(ctx) == nil
}

// Because adds to an unknown outcome the reason why it cannot be found out: the session was
// lost, or ctx is done. The error of the request alone may contain neither, because the
// connection ends a moment earlier. Because returns any other error unchanged.
func (s *Session) Because(ctx context.Context, err error) error {
	reason := s.reason(ctx)
	if reason == nil || errors.Is(err, reason) || !errors.Is(err, recipes.ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w: %w", err, reason)
}

// answer adds the operation and its path to a server's error. A malformed answer becomes
// ErrInternal.
func answer(what, path string, err error) error {
	var code conn.Code
	if !errors.As(err, &code) {
		err = fmt.Errorf("%w: the server answered: %v", recipes.ErrInternal, err)
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// unavailable is the error when ctx ended while no server could be reached.
func (s *Session) unavailable(what string, ctx context.Context) error {
	if last := s.wire.LastError(); last != nil {
		return fmt.Errorf("%s: %w (last attempt: %v): %w", what, recipes.ErrUnavailable, last, ctx.Err())
	}
	return fmt.Errorf("%s: %w (no attempt has ended yet, of %s): %w", what, recipes.ErrUnavailable, strings.Join(s.wire.Servers, ","), ctx.Err())
}

// Interrupted returns the error of a call that ctx has ended. If there is no connection, it
// also matches ErrUnavailable.
func (s *Session) Interrupted(what string, ctx context.Context) error {
	if err := s.Err(); err != nil {
		return err
	}
	if now, _, _ := s.status.Get(); now.connected {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return s.unavailable(what, ctx)
}
