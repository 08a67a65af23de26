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

func (gen *generation) uncount() {
	if gen.changes.Add(-1) == 0 {
		signal(gen.idle)
	}
}

// latest returns the generation that has the session's stream, or had it last.
func (s *Session) latest() *generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// serve makes gen the generation that serves the session; nil means none. The caller holds mu.
func (s *Session) serve(gen *generation) {
	s.serving.Store(gen)
	close(s.changed)
	s.changed = make(chan struct{})
	state := recipes.Suspended
	if gen != nil {
		state = gen.state
	}
	s.events.Set(recipes.Event{State: state})
}

// readStreams reads the stream of one plugin after another, until the session is lost.
func (s *Session) readStreams(gen *generation) {
	close(gen.resumeEnded) // a new session has nothing to resume
	for gen != nil {
		why, final := s.readStream(gen)
		gen.stop()
		continues := s.survives(gen, final)
		gen.plugin.removeSession(s)
		if !continues {
			if errors.Is(why, recipes.ErrPluginLost) {
				s.checkClock() // if this process did not run, the plugin has received no heartbeat
			}
			s.lose(why)
		}
		<-gen.resumeEnded
		if !continues {
			return
		}
		gen.cancelStream()
		if gen = s.move(gen); gen != nil && !s.Spawn(func() { s.resumePossessions(gen) }) {
			close(gen.resumeEnded)
		}
	}
}

// survives reports whether the session continues after the end of gen's stream. This must be
// certain. A plugin that runs without its stream may have begun to close the
// session, and ZooKeeper then grants to others what the session holds.
func (s *Session) survives(gen *generation, final bool) bool {
	if !s.resumable || s.clock.contacted().IsZero() { // before the first echo the age of the last contact is unknown
		return false
	}
	s.mu.Lock()
	if s.err == nil && s.serving.Load() == gen {
		s.serve(nil)
	}
	s.mu.Unlock()
	if final || !s.isFree(gen) {
		return false
	}
	close(gen.ended)
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
		if gen := s.resume(next); gen != nil || s.Err() != nil {
			return gen
		}
		p = next // next has ended too
	}
}

// resume makes p resume the session. It returns nil if p has ended or the session is lost.
func (s *Session) resume(p *Plugin) *generation {
	for p.beginOpen(s.over) {
		gen, err := s.reopen(p)
		if err == nil {
			return gen
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
			s.sleep(s.over, retryPause)
		case errors.As(err, new(unserved)): // p is starting or ending, and does not have the session
			s.sleep(s.over, retryPause)
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
	gen, opened, err := p.openStream(ctx, s.cfg, &pb.Resume{
		Ticket: s.resumeTicket, Session: s.handle,
		KnownContactAge: durationpb.New(time.Since(s.clock.contacted())),
	})
	if err == nil && (opened.GetSession() != s.handle || opened.GetSessionId() != s.id) {
		gen.cancelStream()
		err = fmt.Errorf("%w: the plugin has opened another session", recipes.ErrInternal)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.newest = gen // before Pause can find the session at p
	s.mu.Unlock()
	if renewed := opened.GetTicket(); len(renewed) > 0 {
		s.resumeTicket = renewed
	}
	p.addSession(s)
	if s.Err() != nil { // lose has cancelled the previous stream
		gen.cancelStream()
	}
	s.clock.resumed(opened.GetTimeout().AsDuration())
	return gen, nil
}
