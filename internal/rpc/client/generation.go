package client

import (
	"context"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A generation is the time in which one plugin serves a session. The first one begins when
// the session is opened, and each of the others when a plugin has resumed it.
type generation struct {
	plugin *Plugin
	stream stream
	hangUp context.CancelFunc // ends the stream
	calls  *carry.Calls       // that was there when it began

	over context.Context // ends with the stream
	stop context.CancelFunc

	changes atomic.Int64  // counted calls that are under way
	idle    chan struct{} // holds one when changes has become 0

	ended chan struct{} // closed when the plugin has ended and the session goes on
	took  chan struct{} // closed when resumePossessions has returned

	// Under the session's mu:
	state   recipes.State // that the plugin has told last
	ready   bool          // it has resumed what the session has
	held    bool          // calls wait
	leaving chan struct{} // closed when it has answered or will not; nil: it was not asked to let go
	unheard bool          // it has not answered
	letGo   bool          // it has let go of the session
}

func newGeneration(p *Plugin, st stream, hangUp context.CancelFunc, calls *carry.Calls, o *pb.Opened) *generation {
	over, stop := context.WithCancel(context.Background())
	return &generation{
		over: over, stop: stop,
		plugin: p, stream: st, hangUp: hangUp, calls: calls, state: wire.State(o.GetState()),
		ended: make(chan struct{}), took: make(chan struct{}), idle: make(chan struct{}, 1),
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

// serve has t serve the session; nil is for nobody. It needs mu.
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
