package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Options control the repetition and the cancellation of a unary call. The zero value is for a
// read: the call may be repeated, and ends with the session.
type Options struct {
	awaited bool          // Pause waits for the call
	waiter  *waiter       // may be nil; a call with a waiter can be made before DropRest, if it is offered a turn
	grace   time.Duration // how long the call may continue once the session is over

	// Of a write:
	atMostOnce bool               // see Once
	answers    func(e error) bool // see Repeated; may be nil
	abandonID  string             // see Abandonable; may be empty
}

// unserved is the error of a call that was not made, or a stream that was not opened. Nothing was
// sent to the plugin.
type unserved struct{ error }

func (u unserved) Unwrap() error { return u.error }

// unsent reports whether nothing of a call that failed with err was sent to the plugin.
func unsent(err error) bool {
	return errors.As(err, new(unserved)) || errors.As(err, new(carry.UnsentError))
}

// unanswered is the error of a write whose plugin ended before it answered.
type unanswered struct{}

func (unanswered) Error() string { return "the plugin has ended before it answered" }

// complete makes a call, and repeats it if its plugin has ended and repeating is allowed. A
// plugin that detaches the session refuses writes that it has not begun; these are repeated.
// If a plugin ends before it answers a write, and the session continues, the outcome is
// unknown, unless the call is repeated and answered.
func (s *Session) complete(ctx context.Context, options Options, rpc func(context.Context) error) error {
	for sent := false; ; {
		t, err := s.send(ctx, options, rpc)
		if err == nil {
			return nil
		}
		e, answered := wire.Error(err)
		ended := s.outlived(ctx, t, err)
		switch {
		case ended && (options.atMostOnce || options.answers != nil):
			sent = sent || !answered && !unsent(err) || errors.Is(e, recipes.ErrUnknownOutcome)
			if sent && options.atMostOnce {
				return unanswered{}
			}
		case ended:
		case sent && !(answered && options.answers(e)):
			return fmt.Errorf("%w, and then: %w", unanswered{}, s.verdict(ctx, e, answered))
		default:
			return err
		}
	}
}

// persist repeats a call until the plugin answers, the session is over or ctx ends. It
// returns the plugin's answer.
func (s *Session) persist(ctx context.Context, options Options, rpc func(context.Context) error) error {
	for {
		err := s.complete(ctx, options, rpc)
		e, answered := wire.Error(err)
		if err == nil || answered {
			return e
		}
		if !s.linger(ctx, retryPause) {
			return cmp.Or(s.Err(), ctx.Err())
		}
	}
}

// send waits until a plugin serves the session, and makes a call. It returns the generation in
// which the call was made, or nil. The error comes from gRPC, or is unserved.
//
// The call goes to the plugin that served the session when the call began, even if another
// one serves it by then. So it can never reach a plugin that is still resuming the session.
// It ends with that generation or the session.
func (s *Session) send(ctx context.Context, options Options, rpc func(context.Context) error) (*generation, error) {
	if err := cmp.Or(s.Err(), ctx.Err()); err != nil {
		return nil, unserved{err}
	}
	t, err := s.enter(ctx, options)
	if err != nil {
		return nil, err
	}
	grace := options.grace // the function below must not keep the rest of the options alive
	calling, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.over, func() { time.AfterFunc(grace, cancel) })
	err = rpc(t.plugin.to(calling))
	stop()
	cancel()
	if options.awaited {
		t.uncount()
	}
	if options.waiter != nil {
		s.returned(options.waiter)
	}
	return t, err
}

// enter waits until a plugin serves the session, or the call's waiter is offered a turn. It
// records the call in that generation.
func (s *Session) enter(ctx context.Context, options Options) (*generation, error) {
	var turns <-chan turn
	if options.waiter != nil {
		turns = options.waiter.turns
	}
	for {
		t, changed := s.serving.Load(), (<-chan struct{})(nil)
		if t == nil {
			s.mu.Lock()
			t, changed = s.serving.Load(), s.changed
			s.mu.Unlock()
		}
		switch {
		case t != nil && options.awaited && !s.count(t):
			continue
		case t != nil && options.waiter != nil:
			s.begins(options.waiter, t, nil)
			return t, nil
		case t != nil:
			return t, nil
		}
		select {
		case offered := <-turns:
			if options.awaited {
				offered.in.changes.Add(1)
			}
			s.begins(options.waiter, offered.in, &offered)
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

// count counts a call in a generation, unless t no longer serves the session.
func (s *Session) count(t *generation) bool {
	t.changes.Add(1)
	if s.serving.Load() == t { // from now on Pause waits for it
		return true
	}
	t.uncount()
	return false
}

// outlived reports whether a call failed with err because the plugin of its generation has
// ended or detached the session, and the session continues. The stream reports that, possibly
// later than the call fails. After Detach, outlived waits for nothing else, because the plugin
// takes some time to end.
func (s *Session) outlived(ctx context.Context, t *generation, err error) bool {
	if t == nil || !s.resumable {
		return false
	}
	e, answered := wire.Error(err)
	switch {
	case answered && !errors.Is(e, recipes.ErrSessionLost), !answered && (errors.Is(e, recipes.ErrTooLarge) || ctx.Err() != nil):
		return false
	}
	patience := time.After(verdictTimeout)
	if s.detaching(t) != nil {
		patience = nil
	}
	s.awaitCause(ctx, t.ended, patience)
	select {
	case <-t.ended:
		return s.Err() == nil
	default:
		return false
	}
}

// retryPause is the pause between attempts of a call that is repeated until it is answered.
const retryPause = 100 * time.Millisecond

// linger waits for d. It returns false if the session is lost or ctx ends before.
func (s *Session) linger(ctx context.Context, d time.Duration) bool {
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
