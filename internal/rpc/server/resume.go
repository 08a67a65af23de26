package server

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// movable is a session that another plugin can resume. Its ticket is a secret.
type movable interface {
	ResumeTicket() []byte
	Detach(context.Context) error   // ends the session in this process, not in ZooKeeper
	DropRest(context.Context) error // deletes the znodes that were not resumed
}

// movable returns the target's session as a movable, if this plugin can move sessions.
func (s *Server) movable(t target) (movable, error) {
	if m, ok := t.Client.(movable); ok && s.cfg.Resume != nil {
		return m, nil
	}
	return nil, fmt.Errorf("%w: the plugin does not resume sessions", recipes.ErrUnsupported)
}

// reserve keeps the plugin from resuming a session that it already serves, until release is
// called. After an error release does nothing.
func (s *Server) reserve(r *pb.Resume) (release func(), err error) {
	if r == nil {
		return func() {}, nil
	}
	handle := r.GetSession()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[handle] != nil || s.reserved[handle] {
		return func() {}, fmt.Errorf("resume session: %w: the plugin has a session of that name", recipes.ErrInvalid)
	}
	s.reserved[handle] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.reserved, handle)
	}, nil
}

func (s *Server) resume(ctx context.Context, cfg recipes.SessionConfig, r *pb.Resume) (recipes.Client, error) {
	age := r.GetKnownContactAge()
	switch {
	case s.cfg.Resume == nil:
		return nil, fmt.Errorf("%w: the plugin does not resume sessions", recipes.ErrUnsupported)
	case r.GetSession() == "" || age == nil || age.AsDuration() < 0:
		return nil, fmt.Errorf("resume session: %w: session or known_contact_age is missing", recipes.ErrInvalid)
	}
	return s.cfg.Resume(ctx, cfg, r.GetTicket(), time.Now().Add(-age.AsDuration()))
}

// A resumption is the phase in which a session resumes what it had in another plugin.
type resumption struct {
	resumed bool // another plugin served the session before
	ended   atomic.Bool
}

func (r *resumption) over() bool { return !r.resumed || r.ended.Load() }

// allows returns an error for a new contender before DropRest, which would delete it, and for a
// resumed contender after DropRest.
func (r *resumption) allows(resumed *pb.Grant) error {
	switch {
	case resumed == nil && !r.over():
		return fmt.Errorf("%w: %w", wire.ErrResuming, recipes.ErrInvalid)
	case resumed != nil && r.over():
		return errTooLate
	}
	return nil
}

var errTooLate = fmt.Errorf("%w: the field resumed is allowed only in a session that was resumed, before DropRest", recipes.ErrInvalid)

// resumeGrant resumes a grant of a recipe, or a place in its wait queue, that the session had in
// another plugin.
func resumeGrant[G any](ctx context.Context, recipe any, resumed *pb.Grant, try bool) (none G, err error) {
	if token := recipes.Token(resumed.GetToken()); token != 0 {
		if r, ok := recipe.(interface {
			Resume(ctx context.Context, znode string, token recipes.Token) (G, error)
		}); ok {
			return r.Resume(ctx, resumed.GetZnode(), token)
		}
	} else if r, ok := recipe.(interface {
		ResumeWaiting(ctx context.Context, znode string, try bool) (G, error)
	}); ok {
		return r.ResumeWaiting(ctx, resumed.GetZnode(), try)
	}
	return none, errNotResumed
}

var errNotResumed = fmt.Errorf("resume: %w: the recipe cannot be resumed", recipes.ErrUnsupported)

func (s service) DropRest(ctx context.Context, r *pb.DropRestRequest) (*pb.DropRestResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	m, err := s.movable(target{session: ss})
	if err != nil {
		return nil, err
	}
	ss.dropping.Lock()
	defer ss.dropping.Unlock()
	if ss.resumption.over() { // a repeated call
		return &pb.DropRestResponse{}, nil
	}
	if err := m.DropRest(ctx); err != nil {
		return nil, err
	}
	ss.resumption.ended.Store(true)
	return &pb.DropRestResponse{}, nil
}

func (s service) Detach(ctx context.Context, r *pb.DetachRequest) (*pb.DetachResponse, error) {
	return &pb.DetachResponse{}, do(s.Server, r, s.movable, func(m movable) error { return m.Detach(ctx) })
}

// resumeTicket returns the ticket with which another plugin can resume the session, or nil.
func (s *Server) resumeTicket(ss *session) []byte {
	m, err := s.movable(target{session: ss})
	if err != nil {
		return nil
	}
	return m.ResumeTicket()
}
