package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// connError marks an error of the network, as opposed to an answer of the
// server; go-zookeeper hands write errors to the caller as they are.
type connError struct{ err error }

func (e *connError) Error() string { return e.err.Error() }
func (e *connError) Unwrap() error { return e.err }

// errNotSent says that nothing of a request was sent, because there is no connection or
// it has ended.
var errNotSent = fmt.Errorf("not sent: %w", zk.ErrNoServer)

// lostConnection reports whether err says that the connection failed, so that
// the outcome of the request is unknown. Any other error is the
// server's answer, even one whose code go-zookeeper has no name for.
func lostConnection(err error) bool {
	var ce *connError
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) ||
		errors.Is(err, zk.ErrClosing) || errors.As(err, &ce)
}

// errOversized is what the wire puts in place of a reply that is larger than
// SessionConfig.MaxPacket. Servers never send this code (-117).
var errOversized = zk.ErrNothing

var answers = []struct {
	answer   error
	sentinel error
}{
	{zk.ErrNoNode, recipes.ErrNoNode},
	{zk.ErrNodeExists, recipes.ErrNodeExists},
	{zk.ErrBadVersion, recipes.ErrBadVersion},
	{zk.ErrNotEmpty, recipes.ErrNotEmpty},
	{zk.ErrNoAuth, recipes.ErrAccessDenied},
	{zk.ErrAuthFailed, recipes.ErrAuthFailed},
	{zk.ErrSessionExpired, recipes.ErrExpired},
	{zk.ErrInvalidACL, recipes.ErrInvalid},
	{zk.ErrInvalidPath, recipes.ErrInvalid},
	{zk.ErrBadArguments, recipes.ErrInvalid},
	{zk.ErrNoChildrenForEphemerals, recipes.ErrInvalid},
	{zk.ErrShortBuffer, recipes.ErrTooLarge},
	{errOversized, recipes.ErrTooLarge},
}

// The answers that go-zookeeper has no error for. It hands their code out as text.
var unnamedCodes = map[int]error{
	-124: recipes.ErrSASLRequired,
	-125: recipes.ErrQuota,
	-127: recipes.ErrThrottled,
}

// unnamed returns the sentinel of an answer that go-zookeeper has no error for, or nil.
func unnamed(err error) error {
	var code int
	if _, scan := fmt.Sscanf(err.Error(), "unknown error: %d", &code); scan != nil {
		return nil
	}
	return unnamedCodes[code]
}

// answer gives the server's answer its sentinel.
func answer(what, path string, err error) error {
	if sentinel := unnamed(err); sentinel != nil {
		return fmt.Errorf("%s %s: %w", what, path, sentinel)
	}
	for _, a := range answers {
		if errors.Is(err, a.answer) {
			return fmt.Errorf("%s %s: %w", what, path, a.sentinel)
		}
	}
	return fmt.Errorf("%s %s: %w: the server answered: %v", what, path, recipes.ErrInternal, err)
}

// unavailable says that ctx ended while no server could be reached.
func (s *Session) unavailable(what string, ctx context.Context) error {
	if last := s.dialer.lastError(); last != nil {
		return fmt.Errorf("%s: %w (last attempt: %v): %w", what, recipes.ErrUnavailable, last, ctx.Err())
	}
	return fmt.Errorf("%s: %w (no attempt has ended yet, of %s): %w", what, recipes.ErrUnavailable, strings.Join(s.cfg.Servers, ","), ctx.Err())
}
