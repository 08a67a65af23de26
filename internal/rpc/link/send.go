package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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

// call makes a call, as complete does. If a call with a request id ends without an answer, the
// plugin is notified that it was given up.
func (s *Session) call(ctx context.Context, options Options, rpc func(context.Context) error) error {
	if options.abandonID == "" {
		return s.complete(ctx, options, rpc)
	}
	abandon := func() { s.Abandon(options.abandonID) }
	if options.grace > 0 {
		abandon = sync.OnceFunc(abandon)
		made := rpc
		rpc = func(wanted context.Context) error { return s.callWithGrace(ctx, wanted, options.grace, abandon, made) }
	}
	err := s.complete(ctx, options, rpc)
	if _, answered := wire.Error(err); err != nil && !answered && !unsent(err) {
		abandon()
	}
	return err
}

// callWithGrace makes a call in a context that outlasts wanted: when ctx ends, the call is abandoned, and
// has grace left to answer.
func (s *Session) callWithGrace(ctx, wanted context.Context, grace time.Duration, abandon func(), rpc func(context.Context) error) error {
	calling, cancel := context.WithCancel(context.WithoutCancel(wanted))
	defer cancel()
	if end, ends := wanted.Deadline(); ends {
		calling, cancel = context.WithDeadline(calling, end.Add(grace))
		defer cancel()
	}
	defer context.AfterFunc(wanted, func() {
		if ctx.Err() != nil {
			abandon()
			s.sleep(calling, grace)
		}
		cancel()
	})()
	return rpc(calling)
}

// complete makes a call, and repeats it if its plugin has ended and repeating is allowed. A
// plugin that detaches the session refuses writes that it has not begun; these are repeated.
// If a plugin ends before it answers a write, and the session continues, the outcome is
// unknown, unless the call is repeated and answered.
func (s *Session) complete(ctx context.Context, options Options, rpc func(context.Context) error) error {
	for sent := false; ; {
		gen, err := s.send(ctx, options, rpc)
		if err == nil {
			return nil
		}
		e, answered := wire.Error(err)
		ended := s.pluginEnded(ctx, gen, err)
		switch {
		case ended && (options.atMostOnce || options.answers != nil):
			sent = sent || !answered && !unsent(err) || errors.Is(e, recipes.ErrUnknownOutcome)
			if sent && options.atMostOnce {
				return unanswered{}
			}
		case ended:
		case sent && !(answered && options.answers(e)):
			return fmt.Errorf("%w, and then: %w", unanswered{}, s.selectError(ctx, e, answered))
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
		if !s.sleep(ctx, retryPause) {
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
	gen, err := s.awaitGeneration(ctx, options)
	if err != nil {
		return nil, err
	}
	grace := options.grace // the function below must not keep the rest of the options alive
	calling, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.over, func() { time.AfterFunc(grace, cancel) })
	err = rpc(gen.plugin.to(calling))
	stop()
	cancel()
	if options.awaited {
		gen.uncount()
	}
	if options.pending != nil {
		s.callReturned(options.pending)
	}
	return gen, err
}

// awaitGeneration waits until a plugin serves the session, or until the pending call is offered to one
// that resumes the session. It records the call in that generation.
func (s *Session) awaitGeneration(ctx context.Context, options Options) (*generation, error) {
	var offers <-chan offer
	if options.pending != nil {
		offers = options.pending.offers
	}
	for {
		gen, changed := s.serving.Load(), (<-chan struct{})(nil)
		if gen == nil {
			s.mu.Lock()
			gen, changed = s.serving.Load(), s.changed
			s.mu.Unlock()
		}
		switch {
		case gen != nil && options.awaited && !s.count(gen):
			continue
		case gen != nil && options.pending != nil:
			s.callBegun(options.pending, gen, nil)
			return gen, nil
		case gen != nil:
			return gen, nil
		}
		select {
		case o := <-offers:
			if options.awaited {
				o.in.changes.Add(1)
			}
			s.callBegun(options.pending, o.in, &o)
			return o.in, nil
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

// count counts a call in a generation, unless gen no longer serves the session.
func (s *Session) count(gen *generation) bool {
	gen.changes.Add(1)
	if s.serving.Load() == gen { // from now on Pause waits for it
		return true
	}
	gen.uncount()
	return false
}

// pluginEnded reports whether a call failed with err because the plugin of its generation has
// ended or detached the session, and the session continues. The stream reports that, possibly
// later than the call fails. After Detach, pluginEnded waits for nothing else, because the plugin
// takes some time to end.
func (s *Session) pluginEnded(ctx context.Context, gen *generation, err error) bool {
	if gen == nil || !s.resumable {
		return false
	}
	e, answered := wire.Error(err)
	switch {
	case answered && !errors.Is(e, recipes.ErrSessionLost), !answered && (errors.Is(e, recipes.ErrTooLarge) || ctx.Err() != nil):
		return false
	}
	patience := time.After(causeTimeout)
	if s.detaching(gen) != nil {
		patience = nil
	}
	s.awaitCause(ctx, gen.ended, patience)
	select {
	case <-gen.ended:
		return s.Err() == nil
	default:
		return false
	}
}

// retryPause is the pause between attempts of a call that is repeated until it is answered.
const retryPause = 100 * time.Millisecond

// sleep waits for d. It returns false if the session is lost or ctx ends before.
func (s *Session) sleep(ctx context.Context, d time.Duration) bool {
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
