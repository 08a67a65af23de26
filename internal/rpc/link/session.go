package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/feed"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type stream = grpc.BidiStreamingClient[pb.OpenRequest, pb.OpenResponse]

// Session is a session that plugins serve, one after the other. Its methods are those of
// recipes.Session, and what stubs need besides.
type Session struct {
	client       *Client
	cfg          recipes.SessionConfig
	handle       string
	id           int64
	resumeTicket []byte // for resuming in another plugin; a secret
	server       recipes.ServerKind

	resumable bool // see Resumable

	sending sync.Mutex // held while a heartbeat is sent
	clock   *clock
	source  *telemetry.Source // nil without meters
	events  *feed.Feed[recipes.Event]

	over context.Context // ends when the session is lost
	end  context.CancelFunc

	requests atomic.Uint64 // the last request id

	serving atomic.Pointer[generation] // nil while no plugin serves the session

	mu      sync.Mutex
	err     error
	closed  bool                    // Close waits, or has waited
	held    map[string]*Grant       // grants that are held, by request id
	pending map[string]*pendingCall // by request id
	tasks   sync.WaitGroup

	newest   *generation           // the latest with a stream
	owner    *generation           // the generation whose plugin has the grants
	resuming *generation           // resumes what the owner had; may be nil
	owned    map[string]possession // known to the owner, including grants being released
	changed  chan struct{}         // closed, and replaced, when serving changes

	closing    atomic.Bool
	closeEnded chan struct{} // closed when closeErr is set
	closeErr   error
}

func newSession(c *Client, cfg recipes.SessionConfig, gen *generation, o *pb.Opened) *Session {
	s := &Session{
		client: c, cfg: cfg,
		handle: o.GetSession(), id: o.GetSessionId(), resumeTicket: o.GetTicket(), server: recipes.ServerKind(o.GetServer()),
		events: feed.New(recipes.Event{State: gen.state}),
		held:   make(map[string]*Grant), owned: make(map[string]possession), pending: make(map[string]*pendingCall),
		resumable: len(o.GetTicket()) > 0 && gen.plugin.died != nil,
		newest:    gen, owner: gen, changed: make(chan struct{}), closeEnded: make(chan struct{}),
	}
	gen.ready = true
	s.serving.Store(gen)
	s.over, s.end = context.WithCancel(context.Background())
	s.clock = newClock(o.GetTimeout().AsDuration())
	if s.client.meters != nil {
		s.source = &telemetry.Source{Stats: s.Stats, Remaining: s.clock.remaining}
		s.client.meters.Opened(s.source)
	}
	return s
}

// run starts the session's goroutines. It waits for the first echo, which has the age of the
// last contact, and until it is known which connection carries calls.
func (s *Session) run(ctx context.Context) error {
	gen := s.newest
	if !s.Spawn(func() { s.readStreams(gen) }) {
		gen.plugin.removeSession(s)
		s.lose(recipes.ErrClosed)
		return gen.plugin.failure()
	}
	if !s.Spawn(s.watchClock) {
		s.lose(recipes.ErrClosed)
		return gen.plugin.failure()
	}
	for _, began := range []<-chan struct{}{s.clock.started, gen.calls.Settled()} {
		select {
		case <-began:
		case <-s.over.Done():
			return fmt.Errorf("%w: %w", recipes.ErrUnavailable, s.Err())
		case <-ctx.Done():
			s.lose(recipes.ErrClosed)
			return fmt.Errorf("%w: the plugin did not echo: %w", recipes.ErrUnavailable, ctx.Err())
		}
	}
	return nil
}

// Spawn runs f in a goroutine that Close waits for. Once the session is closed it does
// nothing and returns false.
func (s *Session) Spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.tasks.Add(1)
	if s.client.spawn(func() { defer s.tasks.Done(); f() }) {
		return true
	}
	s.tasks.Done()
	return false
}

// Go runs f in a goroutine that Close waits for. Once the session is closed, f runs before Go
// returns.
func (s *Session) Go(f func()) {
	if !s.Spawn(f) {
		f()
	}
}

// readStream reads a plugin's messages until its stream ends. The stream is the lease: the session
// ends with it, unless another plugin resumes the session. That is impossible if the loss is
// final: the plugin has reported it and did not detach the session, or Fail was called.
func (s *Session) readStream(gen *generation) (why error, final bool) {
	for {
		m, err := gen.stream.Recv()
		if err != nil || gen.plugin.ctx.Err() != nil { // Fail takes precedence: the plugin's message may be its consequence
			return streamEnd(gen, err), gen.plugin.ctx.Err() != nil
		}
		if c := m.GetStateChanged(); c.GetState() == pb.State_STATE_LOST {
			why := wire.Failure(c.GetReason(), recipes.ErrSessionLost)
			return why, isLoss(why) || !s.wasDetached(gen, true)
		}
		s.dispatch(gen, m)
	}
}

func streamEnd(gen *generation, err error) error {
	if cause := context.Cause(gen.plugin.ctx); cause != nil {
		return cause
	}
	e, _ := wire.Error(err)
	return fmt.Errorf("%w: the session's stream ended: %v", recipes.ErrPluginLost, e)
}

func (s *Session) dispatch(gen *generation, m *pb.OpenResponse) {
	switch m := m.GetMessage().(type) {
	case *pb.OpenResponse_StateChanged:
		s.setState(gen, wire.State(m.StateChanged.GetState()))
	case *pb.OpenResponse_GrantLost:
		if g := s.removeGrant(m.GrantLost.GetRequestId()); g != nil {
			g.Lose(wire.Failure(m.GrantLost.GetReason(), recipes.ErrNotHeld))
		}
	case *pb.OpenResponse_BeatEcho:
		s.clock.echo(m.BeatEcho)
	}
}

// setState publishes the state, if the plugin that reports it serves the session.
func (s *Session) setState(gen *generation, state recipes.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gen.state = state
	if s.serving.Load() == gen {
		s.events.Set(recipes.Event{State: state})
	}
	close(s.changed) // for movable
	s.changed = make(chan struct{})
}

// lose ends the session and cancels the stream, so that a plugin that still holds the session
// closes it.
func (s *Session) lose(reason error) {
	s.finish(reason)
	s.latest().cancelStream()
}

// finish ends the session in this process. Only the first reason counts. All grants of the
// session have ended when Done closes.
func (s *Session) finish(reason error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = reason
	s.client.meters.Lost(s.source, reason)
	s.client.meters.Forget(s.source)
	grants := s.held
	s.held, s.owned = nil, nil
	s.mu.Unlock()

	for _, g := range grants {
		g.Lose(fmt.Errorf("%w: %w", recipes.ErrNotHeld, reason))
	}
	s.events.Close(recipes.Event{State: recipes.Lost, Reason: reason})
	s.end()
}

// RequestID returns an id that this session has not used before. Other sessions may use the
// same id.
func (s *Session) RequestID() string { return strconv.FormatUint(s.requests.Add(1), 10) }

// Resumable reports whether the session can outlive its plugin process.
func (s *Session) Resumable() bool { return s.resumable }

// Handle names the session in the requests of a stub.
func (s *Session) Handle() string { return s.handle }

func (s *Session) ID() int64              { return s.id }
func (s *Session) Timeout() time.Duration { return s.clock.sessionTimeout() }
func (s *Session) Done() <-chan struct{}  { s.checkClock(); return s.over.Done() }

func (s *Session) State() recipes.State {
	s.checkClock()
	e, _, _ := s.events.Get()
	return e.State
}

func (s *Session) Events(ctx context.Context) <-chan recipes.Event { return s.events.Watch(ctx) }

func (s *Session) Err() error {
	s.checkClock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Session) Stats(ctx context.Context) (recipes.Stats, error) {
	a, err := Read(ctx, s, "stats", s.client.sessions.Stats, &pb.StatsRequest{Session: s.handle})
	if err != nil {
		return recipes.Stats{}, err
	}
	stats := wire.Stats(a)
	stats.Server = s.server
	return stats, nil
}

func (s *Session) Close(ctx context.Context) error {
	if s.closing.CompareAndSwap(false, true) {
		s.closeErr = s.close(ctx)
		close(s.closeEnded)
	}
	err := Outcome(ctx, s.closeEnded, &s.closeErr)
	if err != nil && err == ctx.Err() {
		return fmt.Errorf("close session: another call is closing it: %w: %w", recipes.ErrUnknownOutcome, err)
	}
	return err
}

func (s *Session) close(ctx context.Context) error {
	s.client.meters.Read(ctx, s.source)
	if gen, err := s.awaitGeneration(ctx, Options{awaited: true}); err == nil { // if no plugin serves the session, awaitGeneration waits for the next one
		defer gen.uncount()
	}
	s.finish(recipes.ErrClosed) // the stream stays open for the call to Close
	err := s.closeRemote(ctx)
	s.latest().cancelStream()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.tasks.Wait()
	return err
}

// closeGrace is how long Close waits for the plugin although its context has ended, as Close of
// the library waits for the server: see recipes.Session.
const closeGrace = 100 * time.Millisecond

// closeRemote makes the plugin close the session in ZooKeeper, and returns an error if that is
// not confirmed. It waits at most for the session timeout: then ZooKeeper has expired the
// session.
func (s *Session) closeRemote(ctx context.Context) error {
	unknown := func(cause error) error {
		return fmt.Errorf("close session: %w: %w", recipes.ErrUnknownOutcome, cause)
	}
	if reason := s.Err(); errors.Is(reason, recipes.ErrExpired) {
		return nil
	} else if !errors.Is(reason, recipes.ErrClosed) {
		return unknown(reason)
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeout())
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(closeGrace, cancel) })()
	_, err := s.client.sessions.Close(s.latest().plugin.to(limit), &pb.CloseRequest{Session: s.handle})
	if err == nil {
		return nil
	}
	e, answered := wire.Error(err)
	switch {
	case answered && errors.Is(e, recipes.ErrExpired):
		return nil
	case answered && errors.Is(e, recipes.ErrUnknownOutcome):
		return e
	case !answered && limit.Err() != nil:
		return unknown(cmp.Or(ctx.Err(), limit.Err()))
	}
	return unknown(e)
}
