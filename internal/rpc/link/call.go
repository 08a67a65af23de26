package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A Method is a method of a plugin service.
type Method[Q, A any] = func(context.Context, Q, ...grpc.CallOption) (A, error)

// Options control the repetition and the cancellation of a unary call. The zero value is for a
// read: the call may be repeated, and ends with the session.
type Options struct {
	awaited bool          // Pause waits for the call
	pending *pendingCall  // may be nil
	grace   time.Duration // how long the call may continue once the session is over

	// Of a write:
	atMostOnce bool               // see AtMostOnce
	answers    func(e error) bool // see Repeated; may be nil
	abandonID  string             // see Abandonable; may be empty
}

// AtMostOnce marks a write that is sent at most once. If gRPC fails the call, or its
// plugin ends before it answers and the session continues, the outcome is unknown. The stream
// may report the loss of the session before the call's answer arrives, and the answer is more
// precise. So the call may continue for a moment.
func AtMostOnce() Options { return Options{atMostOnce: true, awaited: true, grace: answerTime} }

// Repeated marks a write that may be sent twice. It is repeated if its plugin has
// ended. answers reports whether an error from the next plugin also answers the earlier call.
// If it does not, the outcome is unknown.
func Repeated(answers func(e error) bool) Options {
	return Options{answers: answers, grace: answerTime}
}

// Abandonable adds a request id, for a call that may wait long before it changes anything. When the
// caller's context ends, the plugin is notified by Abandon. The call then has a moment left
// to answer with its outcome. Cancelling the call itself would leave the outcome unknown. A
// call that gRPC failed is abandoned too: the caller does not know its effect.
func (o Options) Abandonable(id string) Options { o.abandonID = id; return o }

// answerTime bounds the wait for the answer to a call that was abandoned, or whose session
// was lost. The answer normally takes microseconds. A busy machine may need more, and there
// an unknown outcome is worse than a late one.
const answerTime = time.Second

// Read makes a call that changes nothing, or that may be repeated although it does. The call
// ends with ctx and with the session. what is the operation in errors.
func Read[Q, A any](ctx context.Context, s *Session, what string, method Method[Q, A], request Q) (answer A, err error) {
	err = s.complete(ctx, Options{}, func(ctx context.Context) (err error) { answer, err = method(ctx, request); return err })
	if err != nil {
		return answer, s.explain(ctx, what, err)
	}
	return answer, nil
}

// Write makes a call that changes something; options say whether it may be repeated. what is the
// operation in errors.
func Write[Q, A any](ctx context.Context, s *Session, what string, options Options, method Method[Q, A], request Q) (answer A, err error) {
	err = s.call(ctx, options, func(ctx context.Context) (err error) { answer, err = method(ctx, request); return err })
	if err != nil {
		return answer, s.explainWrite(ctx, what, err)
	}
	return answer, nil
}

// WriteOrFind makes a write whose effect can be found. If its plugin ends before it answers, and the
// session continues, find asks the next plugin for the answer that was lost. DropRest waits for that,
// and find is repeated until it is answered. Its answer recipes.ErrNotHeld means that the write has
// done nothing; then it is made again. id is the write's request id, by which it is abandoned: see
// Abandonable. what is the operation in errors.
func WriteOrFind[Q, A any](ctx context.Context, s *Session, what, id string, write, find Method[Q, A], request Q) (answer A, err error) {
	nothing := false
	options, done := s.DelayDropRest(Repeated(func(error) bool { return nothing }).Abandonable(id))
	defer done()
	for {
		nothing = false
		err = s.call(ctx, options, func(ctx context.Context) (err error) {
			if options.pending.resumed == nil {
				answer, err = write(ctx, request)
				return err
			}
			asking, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(options.pending.on.over, cancel)() // after the end of its generation the next plugin is asked
			refused, answered := s.retry(asking, func(ctx context.Context) error {
				answer, err = find(ctx, request)
				return err
			})
			nothing = answered && errors.Is(refused, recipes.ErrNotHeld)
			return err
		})
		switch {
		case err == nil:
			return answer, nil
		case !nothing:
			return answer, s.explainWrite(ctx, what, err)
		case ctx.Err() != nil:
			return answer, fmt.Errorf("%s: %w", what, s.interrupted(ctx.Err()))
		}
	}
}

// Persist repeats a call until the plugin answers it or the session is over. It returns the plugin's
// answer, and how often the call was made. Pause waits for the call.
func Persist[Q, A any](s *Session, method Method[Q, A], request Q) (answer A, calls int, err error) {
	err = s.persist(s.over, Options{awaited: true}, func(ctx context.Context) (err error) {
		calls++
		answer, err = method(ctx, request)
		return err
	})
	return answer, calls, err
}

// Await repeats a call that waits while a grant is held, until the plugin answers it. It returns
// the answer. Pause does not wait for the call.
func Await[Q, A any](g *Grant, method Method[Q, A], request Q) error {
	wait, cancel := context.WithCancel(g.s.over)
	defer cancel()
	go func() { // ends with this call at the latest
		select {
		case <-g.lost:
			cancel()
		case <-wait.Done():
		}
	}()
	err := g.s.persist(wait, Options{}, func(ctx context.Context) error { _, err := method(ctx, request); return err })
	g.EndIfNotHeld(err)
	return err
}

// WriteAs makes a write once, on behalf of a grant. The call ends with the session, like the
// grant. ops are the operations of a guarded write.
func WriteAs[Q, A any](ctx context.Context, g *Grant, what string, method Method[Q, A], request Q, ops ...recipes.Op) error {
	if err := g.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err := g.s.complete(ctx, Options{atMostOnce: true, awaited: true}, func(ctx context.Context) error { _, err := method(ctx, request); return err })
	if err == nil {
		return nil
	}
	e, answered := wire.WriteError(err, ops)
	if refused, ok := errors.AsType[*recipes.WriteError](e); ok {
		return refused
	}
	if answered {
		g.EndIfNotHeld(e)
	}
	err = g.s.explainWrite(ctx, what, err)
	if errors.Is(err, recipes.ErrUnknownOutcome) {
		return err
	}
	return NotHeld(err)
}

// Leave ends a grant by a call that is repeated if its plugin ends and the session continues. While
// it runs, the next plugin resumes the grant by the request leaving. After an error no plugin
// resumes it, and DropRest deletes its znode.
func Leave[Q, A any](ctx context.Context, g *Grant, what string, leaving *pb.AcquireRequest, method Method[Q, A], request Q) error {
	g.s.checkClock()
	g.setLeaving(leaving)
	g.Lose(recipes.ErrReleased)
	err := g.s.complete(ctx, Options{}, func(ctx context.Context) error { _, err := method(ctx, request); return err })
	g.Forget()
	if err == nil {
		return nil
	}
	if _, answered := wire.Error(err); !answered || g.s.resumable {
		g.s.Abandon(g.id) // the call may not have reached the plugin that has the grant now
	}
	return NotHeld(g.s.explain(ctx, what, err))
}
