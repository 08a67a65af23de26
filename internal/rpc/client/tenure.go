package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A tenure is the time in which one plugin serves a session. The first one begins when
// the session is opened, and each of the others when a plugin has resumed it.
type tenure struct {
	plugin *Plugin
	stream stream
	hangUp context.CancelFunc // ends the stream
	calls  *carry.Calls       // that was there when it began

	over context.Context // ends with the stream
	stop context.CancelFunc

	state recipes.State // that the plugin has told last; under the session's mu
	ready bool          // it has taken up what the session has; under the session's mu

	replacing

	ended chan struct{} // closed when the plugin has ended and the session goes on
	took  chan struct{} // closed when takeUp has returned
}

func newTenure(p *Plugin, st stream, hangUp context.CancelFunc, calls *carry.Calls, o *pb.Opened) *tenure {
	over, stop := context.WithCancel(context.Background())
	return &tenure{
		over: over, stop: stop,
		plugin: p, stream: st, hangUp: hangUp, calls: calls, state: wire.State(o.GetState()),
		ended: make(chan struct{}), took: make(chan struct{}),
		replacing: replacing{idle: make(chan struct{}, 1)},
	}
}

// latest returns the tenure that has the session's stream, or had it last.
func (s *session) latest() *tenure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// unserved is the error of a call that was not made, because no plugin served the
// session.
type unserved struct{ error }

func (u unserved) Unwrap() error { return u.error }

// served waits until a plugin serves the session. A call that is made in a tenure goes
// to the plugin of that tenure, also when another one serves the session by then. So it
// can never reach a plugin that is still taking the session up.
func (s *session) served(ctx context.Context) (*tenure, error) {
	for {
		t, changed := s.servedNow()
		if t != nil {
			return t, nil
		}
		select {
		case <-changed:
		case <-s.over.Done():
			return nil, s.Err()
		case <-ctx.Done():
			return nil, notServed(ctx)
		}
	}
}

// servedNow returns the tenure in which the session is served. While no plugin serves it,
// changed is closed when one may.
func (s *session) servedNow() (t *tenure, changed <-chan struct{}) {
	if t := s.serving.Load(); t != nil {
		return t, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serving.Load(), s.turn
}

func notServed(ctx context.Context) error {
	return unserved{fmt.Errorf("%w: the plugin has ended, and no other serves the session yet: %w", recipes.ErrUnavailable, ctx.Err())}
}

// serve has t serve the session; nil is for nobody. It needs mu.
func (s *session) serve(t *tenure) {
	s.serving.Store(t)
	close(s.turn)
	s.turn = make(chan struct{})
	state := recipes.Suspended
	if t != nil {
		state = t.state
	}
	s.events.Set(recipes.Event{State: state})
}

// once makes one unary call when a plugin serves the session. The call ends with that
// plugin's tenure or the session, and has some time left then. The error is gRPC's.
func (s *session) once(ctx context.Context, left time.Duration, rpc func(context.Context) error) (*tenure, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	t, err := s.served(ctx)
	if err != nil {
		return nil, err
	}
	return t, s.in(ctx, t, left, rpc)
}

// in makes a call in a tenure.
func (s *session) in(ctx context.Context, t *tenure, left time.Duration, rpc func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.over, func() { time.AfterFunc(left, cancel) })()
	return rpc(t.plugin.to(ctx))
}

// outlived reports whether a call failed with err because the plugin of its tenure has
// ended or let go of the session, which goes on. The stream tells that, if not at once. A
// plugin that has let go takes some time to end.
func (s *session) outlived(ctx context.Context, t *tenure, err error) bool {
	if err == nil || t == nil || !s.resumable {
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

// again makes a call that may be repeated. It is, when its plugin has ended and another
// one serves the session.
func (s *session) again(ctx context.Context, rpc func(context.Context) error) error {
	for {
		t, err := s.once(ctx, 0, rpc)
		if !s.outlived(ctx, t, err) {
			return err
		}
	}
}
