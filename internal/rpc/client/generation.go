package client

import (
	"context"
	"sync/atomic"

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
func (s *session) latest() *generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// serve makes t the generation that serves the session; nil means none. The caller holds mu.
func (s *session) serve(t *generation) {
	s.serving.Store(t)
	close(s.changed)
	s.changed = make(chan struct{})
	state := recipes.Suspended
	if t != nil {
		state = t.state
	}
	s.events.Set(recipes.Event{State: state})
}
