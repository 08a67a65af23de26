package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A way is how a unary call is made. The zero value is for a read.
type way struct {
	counted bool          // Pause waits for it
	waiter  *waiter       // that it belongs to; may be nil. DropRest would undo what it does: it is made before that.
	left    time.Duration // that the call has when the session is over

	once    bool               // a write, see once
	answers func(e error) bool // a write, see repeated
	id      string             // a write, see by
}

// unserved is the error of a call that was not made.
type unserved struct{ error }

func (u unserved) Unwrap() error { return u.error }

// unanswered is the error of a write whose plugin has ended.
type unanswered struct{}

func (unanswered) Error() string { return "the plugin has ended before it answered" }

// complete makes a call, and again where its plugin has ended and it may be. A plugin that lets go of the session
// refuses writes that it has not begun, and these are made again. If another one has ended
// before it answered a write, and the session goes on, the outcome is unknown, unless the
// call is repeated and answered.
func (s *session) complete(ctx context.Context, how way, rpc func(context.Context) error) error {
	for sent := false; ; {
		t, err := s.send(ctx, how, rpc)
		if err == nil {
			return nil
		}
		e, said := wire.Error(err)
		ended := s.outlived(ctx, t, err)
		switch {
		case ended && (how.once || how.answers != nil):
			sent = sent || !said || errors.Is(e, recipes.ErrUnknownOutcome)
			if sent && how.once {
				return unanswered{}
			}
		case ended:
		case sent && !(said && how.answers(e)):
			return fmt.Errorf("%w, and then: %w", unanswered{}, s.verdict(ctx, e, said))
		default:
			return err
		}
	}
}

// persist repeats a call until it is answered, the session is over or ctx ends. It returns
// what the plugin said.
func (s *session) persist(ctx context.Context, how way, rpc func(context.Context) error) error {
	for {
		err := s.complete(ctx, how, rpc)
		e, said := wire.Error(err)
		if err == nil || said {
			return e
		}
		if !s.linger(ctx, retryPause) {
			return cmp.Or(s.Err(), ctx.Err())
		}
	}
}

// send makes a call when a plugin serves the session, and returns the generation in which it
// was made, or nil. The error is gRPC's, or says why the call was not made.
//
// The call goes to the plugin that served the session when it began, also when another one
// does by then. So it can never reach a plugin that is still taking the session up. It ends
// with that generation or the session.
func (s *session) send(ctx context.Context, how way, rpc func(context.Context) error) (*generation, error) {
	if err := cmp.Or(s.Err(), ctx.Err()); err != nil {
		return nil, unserved{err}
	}
	t, err := s.enter(ctx, how)
	if err != nil {
		return nil, err
	}
	left := how.left // so that the function does not keep the rest
	calling, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.over, func() { time.AfterFunc(left, cancel) })
	err = rpc(t.plugin.to(calling))
	stop()
	cancel()
	if how.counted {
		t.uncount()
	}
	if how.waiter != nil {
		s.answered(how.waiter)
	}
	return t, err
}

// enter waits until a plugin serves the session, or the call's waiter is offered a turn, and
// notes the call there.
func (s *session) enter(ctx context.Context, how way) (*generation, error) {
	var turns <-chan turn
	if how.waiter != nil {
		turns = how.waiter.turns
	}
	for {
		t, changed := s.serving.Load(), (<-chan struct{})(nil)
		if t == nil {
			s.mu.Lock()
			t, changed = s.serving.Load(), s.changed
			s.mu.Unlock()
		}
		switch {
		case t != nil && how.counted && !s.count(t):
			continue
		case t != nil && how.waiter != nil:
			s.begins(how.waiter, t, nil)
			return t, nil
		case t != nil:
			return t, nil
		}
		select {
		case offered := <-turns:
			s.begins(how.waiter, offered.in, &offered)
			return offered.in, nil
		case <-changed:
		case <-s.over.Done():
			return nil, unserved{s.Err()}
		case <-ctx.Done():
			return nil, notServed(ctx)
		}
	}
}

func notServed(ctx context.Context) error {
	return unserved{fmt.Errorf("%w: the plugin has ended, and no other serves the session yet: %w", recipes.ErrUnavailable, ctx.Err())}
}

// count counts a call in a generation, unless the session is not served there any more.
func (s *session) count(t *generation) bool {
	t.changes.Add(1)
	if s.serving.Load() == t { // holdBack, from now on, finds it counted
		return true
	}
	t.uncount()
	return false
}

// outlived reports whether a call failed with err because the plugin of its generation has
// ended or let go of the session, which goes on. The stream tells that, if not at once. A
// plugin that has let go takes some time to end.
func (s *session) outlived(ctx context.Context, t *generation, err error) bool {
	if t == nil || !s.resumable {
		return false
	}
	e, said := wire.Error(err)
	switch {
	case said && !errors.Is(e, recipes.ErrSessionLost), !said && (errors.Is(e, recipes.ErrTooLarge) || ctx.Err() != nil):
		return false
	}
	wait := time.NewTimer(verdictTimeout)
	defer wait.Stop()
	patience := wait.C
	if s.leaves(t) != nil {
		patience = nil
	}
	select {
	case <-t.ended:
		return s.Err() == nil
	case <-s.over.Done():
	case <-ctx.Done():
	case <-patience:
	}
	return false
}

// retryPause is the pause between attempts of a call that is repeated until it is
// answered.
const retryPause = 100 * time.Millisecond

// linger waits for d. It reports false if the session is lost or ctx ends before.
func (s *session) linger(ctx context.Context, d time.Duration) bool {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-s.over.Done():
	case <-ctx.Done():
	}
	return false
}
