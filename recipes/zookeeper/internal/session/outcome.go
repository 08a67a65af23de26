package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strings"
	"time"

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

// once sends a write at most once. If the connection ends or ctx is done after it was sent, the
// error matches ErrUnknownOutcome.
func once[T any](ctx context.Context, s *Session, what, path string, f func() (T, error)) (T, error) {
	var zero T
	connections := 0
	for {
		var err error
		if connections, _, err = s.connectedAfter(ctx, connections); err != nil {
			return zero, err
		}
		if ctx.Err() != nil { // send no write whose outcome could not be learned
			return zero, s.Interrupted(what+" "+path, ctx)
		}
		value, err := call(ctx, s, f)
		switch {
		case err == nil:
			return value, nil
		case errors.Is(err, conn.ErrNotSent):
			continue
		case errors.Is(err, errMoved):
			return zero, err
		case conn.Lost(err), ctx.Err() != nil, s.Err() != nil:
			return zero, fmt.Errorf("%s %s: %w: %w", what, path, recipes.ErrUnknownOutcome, cmp.Or(s.reason(ctx), err))
		}
		return zero, answer(what, path, err)
	}
}

// Fits returns an ErrTooLarge if a transaction with a receipt that sets this data does not fit
// into a packet.
func (s *Session) Fits(path string, data []byte) error {
	const receipt = 4 * packetSlack // includes the transaction around both operations
	return s.fits(path, data, receipt)
}

// SetOnce replaces the data of a znode that has the version (-1: any), and returns its new
// record. Like Commit, it sends the request at most once.
func (s *Session) SetOnce(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	if err := s.fits(path, data, packetSlack); err != nil {
		return Stat{}, err
	}
	return once(ctx, s, "set", path, func() (Stat, error) {
		return conn.Ask(s.wire.Current(), conn.Set(s.full(path), data, version), conn.Reply.Stat)
	})
}

// DeleteOnce deletes a znode that has the version (-1: any). Like Commit, it sends the request
// at most once.
func (s *Session) DeleteOnce(ctx context.Context, path string, version int32) error {
	_, err := once(ctx, s, "delete", path, func() (struct{}, error) {
		return conn.Ask(s.wire.Current(), conn.Delete(s.full(path), version), conn.Reply.Nothing)
	})
	return err
}

// Create creates a persistent znode and its missing parents. After a lost reply it sends the
// creation again only if it is known not to have happened, because no child of the parent was
// created or deleted since. Otherwise the error matches ErrUnknownOutcome: the znode exists and
// may be another client's, or this call created it and another client has deleted it.
// ErrNodeExists means that another client created it.
func (s *Session) Create(ctx context.Context, path string, data []byte) error {
	if err := s.fits(path, data, packetSlack); err != nil {
		return err
	}
	parent := gopath.Dir(path)
	for {
		before, err := s.Stat(ctx, parent)
		if errors.Is(err, recipes.ErrNoNode) {
			if err := s.Ensure(ctx, parent); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		_, err = once(ctx, s, "create", path, func() (string, error) {
			return conn.Ask(s.wire.Current(), conn.Create(s.full(path), data, conn.Persistent, s.acl), conn.Reply.Path)
		})
		switch {
		case errors.Is(err, recipes.ErrNoNode):
			continue // the parent was an empty container, which the server has deleted
		case !s.Unsettled(ctx, err):
			return s.Because(ctx, err)
		}
		if err := s.Sync(ctx, parent); err != nil {
			return fmt.Errorf("create %s: %w: %w", path, recipes.ErrUnknownOutcome, err)
		}
		after, statErr := s.Stat(ctx, parent)
		if statErr != nil || after.Pzxid != before.Pzxid || after.Czxid != before.Czxid {
			return s.Because(ctx, err)
		}
	}
}

// throttlePause is the longest pause before a throttled request is sent again.
const throttlePause = 100 * time.Millisecond

// RetryThrottled calls ask again while the server throttles, because it may accept the request
// later. It is used for operations that must finish: a deletion, a read that follows changes, the
// search after a lost reply. Giving up would leave an unknown contender in the wait queue, or a
// reader without news, as long as the session lives. Each call of ask must return when ctx is
// done.
func RetryThrottled[T any](ctx context.Context, s *Session, ask func() (T, error)) (T, error) {
	for {
		answer, err := ask()
		if !s.Throttled(ctx, err) {
			return answer, err
		}
	}
}

// Throttled reports whether err means that the server throttles. If so, it pauses before it
// returns, and returns early when ctx is done. A caller that tries again must use ctx for the
// request too: otherwise it would repeat the request without a pause once ctx is done.
func (s *Session) Throttled(ctx context.Context, err error) bool {
	if !errors.Is(err, recipes.ErrThrottled) {
		return false
	}
	pause := time.NewTimer(s.RandomBelow(throttlePause))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	return true
}
