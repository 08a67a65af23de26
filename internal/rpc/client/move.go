package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// live listens to one plugin after the other, until the session is lost.
func (s *session) live(t *generation) {
	close(t.took) // there was nothing to resume
	for t != nil {
		why, final := s.listen(t)
		t.stop()
		goesOn := s.survives(t, final)
		t.plugin.ended(s)
		if !goesOn {
			s.lose(why)
		}
		<-t.took
		if !goesOn {
			return
		}
		t.hangUp()
		if t = s.move(t); t != nil && !s.spawn(func() { s.resumePossessions(t) }) {
			close(t.took)
		}
	}
}

// survives reports whether the session goes on without t's plugin, whose stream has
// ended. That must be certain. The plugin may have begun to close the session if it runs
// without its stream, and then ZooKeeper gives away what the session holds.
func (s *session) survives(t *generation, final bool) bool {
	if !s.resumable || s.clock.contacted().IsZero() { // without an echo its age is not known
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

// move waits for a plugin that resumes the session. It returns nil if the session is
// lost.
func (s *session) move(from *generation) *generation {
	defer context.AfterFunc(s.Client.ctx, func() { s.lose(context.Cause(s.Client.ctx)) })()
	for p := from.plugin; ; {
		next, resumes := s.successor(s.over, p)
		switch {
		case next == nil:
			return nil
		case !resumes:
			s.lose(fmt.Errorf("%w: the plugin that has taken its place does not resume sessions", recipes.ErrPluginLost))
			return nil
		}
		if t := s.resume(next); t != nil || s.Err() != nil {
			return t
		}
		p = next // which has ended too
	}
}

// resume has p resume the session. It returns nil if p has ended or the session is
// lost.
func (s *session) resume(p *Plugin) *generation {
	for p.enter(s.over) {
		t, err := s.reopen(p)
		if err == nil {
			return t
		}
		e, said := wire.Error(err)
		switch {
		case s.Err() != nil:
			return nil
		case s.Client.ctx.Err() != nil:
			s.lose(context.Cause(s.Client.ctx))
			return nil
		case said && errors.Is(e, recipes.ErrSessionLost) && !errors.Is(e, recipes.ErrPluginLost):
			s.lose(e)
			return nil
		case said && !errors.Is(e, recipes.ErrUnsupported) && !errors.Is(e, recipes.ErrInvalid): // ZooKeeper is not reached, or p ends, for example
			s.linger(s.over, retryPause)
		case errors.As(err, new(unreached)): // it is starting or ending, and has not the session
			s.linger(s.over, retryPause)
		case !said && p.died(s.over):
			return nil
		default:
			s.lose(fmt.Errorf("%w: the session was not resumed: %w", recipes.ErrPluginLost, e))
			return nil
		}
	}
	return nil
}

// reopen opens the session's stream at p, which has counted it.
func (s *session) reopen(p *Plugin) (*generation, error) {
	defer p.entered()
	ctx, cancel := context.WithTimeout(s.over, s.clock.remaining())
	defer cancel()
	t, opened, err := p.begin(ctx, s.cfg, &pb.Resume{
		Ticket: s.resumeTicket, Session: s.handle,
		KnownContactAge: durationpb.New(time.Since(s.clock.contacted())),
	})
	if err == nil && (opened.GetSession() != s.handle || opened.GetSessionId() != s.id) {
		t.hangUp()
		err = fmt.Errorf("%w: the plugin has opened another session", recipes.ErrInternal)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.newest = t // before Pause can find the session there
	s.mu.Unlock()
	if renewed := opened.GetTicket(); len(renewed) > 0 {
		s.resumeTicket = renewed
	}
	p.serves(s)
	if s.Err() != nil { // lose has hung up the one before
		t.hangUp()
	}
	s.clock.resumed(opened.GetTimeout().AsDuration())
	return t, nil
}
