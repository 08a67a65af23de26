package link

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A generation is the period in which one plugin serves a session. The first begins when the
// session is opened. Each later one begins when another plugin has resumed the session.
type generation struct {
	plugin       *Plugin
	stream       stream
	cancelStream context.CancelFunc // cancels the stream
	calls        *carry.Calls       // the call connection when it began

	over context.Context // ends with the stream
	stop context.CancelFunc

	changes atomic.Int64  // counted calls in progress
	idle    chan struct{} // holds one element when changes has become 0

	ended       chan struct{} // closed when the plugin has ended and the session continues
	resumeEnded chan struct{} // closed when resumePossessions has returned

	// Under the session's mu:
	state        recipes.State // the latest that the plugin reported
	ready        bool          // the plugin has resumed all possessions
	paused       bool          // calls wait
	detaching    chan struct{} // closed when Detach has returned; nil if it was not called
	detachFailed bool          // Detach has returned without the plugin's answer
	detached     bool          // the plugin has detached the session
}

func newGeneration(p *Plugin, st stream, cancelStream context.CancelFunc, calls *carry.Calls, o *pb.Opened) *generation {
	over, stop := context.WithCancel(context.Background())
	return &generation{
		over: over, stop: stop,
		plugin: p, stream: st, cancelStream: cancelStream, calls: calls, state: wire.State(o.GetState()),
		ended: make(chan struct{}), resumeEnded: make(chan struct{}), idle: make(chan struct{}, 1),
	}
}

func (t *generation) uncount() {
	if t.changes.Add(-1) == 0 {
		signal(t.idle)
	}
}

// latest returns the generation that has the session's stream, or had it last.
func (s *Session) latest() *generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// serve makes t the generation that serves the session; nil means none. The caller holds mu.
func (s *Session) serve(t *generation) {
	s.serving.Store(t)
	close(s.changed)
	s.changed = make(chan struct{})
	state := recipes.Suspended
	if t != nil {
		state = t.state
	}
	s.events.Set(recipes.Event{State: state})
}

// live reads the stream of one plugin after another, until the session is lost.
func (s *Session) live(t *generation) {
	close(t.resumeEnded) // a new session has nothing to resume
	for t != nil {
		why, final := s.listen(t)
		t.stop()
		continues := s.survives(t, final)
		t.plugin.removeSession(s)
		if !continues {
			if errors.Is(why, recipes.ErrPluginLost) {
				s.checkClock() // if this process did not run, the plugin has received no heartbeat
			}
			s.lose(why)
		}
		<-t.resumeEnded
		if !continues {
			return
		}
		t.cancelStream()
		if t = s.move(t); t != nil && !s.Spawn(func() { s.resumePossessions(t) }) {
			close(t.resumeEnded)
		}
	}
}

// survives reports whether the session continues after the end of t's stream. This must be
// certain. A plugin that runs without its stream may have begun to close the
// session, and ZooKeeper then grants to others what the session holds.
func (s *Session) survives(t *generation, final bool) bool {
	if !s.resumable || s.clock.contacted().IsZero() { // before the first echo the age of the last contact is unknown
		return false
	}
	s.mu.Lock()
	if s.err == nil && s.serving.Load() == t {
		s.serve(nil)
	}
	s.mu.Unlock()
	if final || !s.isFree(t) {
		return false
	}
	close(t.ended)
	return s.Err() == nil
}

// move waits for a plugin that resumes the session, and returns the generation that begins
// there. It returns nil if the session is lost.
func (s *Session) move(from *generation) *generation {
	defer context.AfterFunc(s.client.ctx, func() { s.lose(context.Cause(s.client.ctx)) })()
	for p := from.plugin; ; {
		next, resumes := s.client.successor(s.over, p)
		switch {
		case next == nil:
			return nil
		case !resumes || next.died == nil:
			s.lose(fmt.Errorf("%w: the next plugin does not resume sessions", recipes.ErrPluginLost))
			return nil
		}
		if t := s.resume(next); t != nil || s.Err() != nil {
			return t
		}
		p = next // next has ended too
	}
}

// resume makes p resume the session. It returns nil if p has ended or the session is lost.
func (s *Session) resume(p *Plugin) *generation {
	for p.beginOpen(s.over) {
		t, err := s.reopen(p)
		if err == nil {
			return t
		}
		e, answered := wire.Error(err)
		switch {
		case s.Err() != nil:
			return nil
		case s.client.ctx.Err() != nil:
			s.lose(context.Cause(s.client.ctx))
			return nil
		case answered && errors.Is(e, recipes.ErrSessionLost) && !errors.Is(e, recipes.ErrPluginLost):
			s.lose(e)
			return nil
		case answered && !errors.Is(e, recipes.ErrUnsupported) && !errors.Is(e, recipes.ErrInvalid): // for example: ZooKeeper cannot be reached, or p is ending
			s.linger(s.over, retryPause)
		case errors.As(err, new(unserved)): // p is starting or ending, and does not have the session
			s.linger(s.over, retryPause)
		case !answered && p.died(s.over):
			return nil
		default:
			s.lose(fmt.Errorf("%w: the session was not resumed: %w", recipes.ErrPluginLost, e))
			return nil
		}
	}
	return nil
}

// reopen opens the session's stream at p. p.beginOpen has counted the attempt.
func (s *Session) reopen(p *Plugin) (*generation, error) {
	defer p.endOpen()
	ctx, cancel := context.WithTimeout(s.over, s.clock.remaining())
	defer cancel()
	t, opened, err := p.begin(ctx, s.cfg, &pb.Resume{
		Ticket: s.resumeTicket, Session: s.handle,
		KnownContactAge: durationpb.New(time.Since(s.clock.contacted())),
	})
	if err == nil && (opened.GetSession() != s.handle || opened.GetSessionId() != s.id) {
		t.cancelStream()
		err = fmt.Errorf("%w: the plugin has opened another session", recipes.ErrInternal)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.newest = t // before Pause can find the session at p
	s.mu.Unlock()
	if renewed := opened.GetTicket(); len(renewed) > 0 {
		s.resumeTicket = renewed
	}
	p.addSession(s)
	if s.Err() != nil { // lose has cancelled the previous stream
		t.cancelStream()
	}
	s.clock.resumed(opened.GetTimeout().AsDuration())
	return t, nil
}
