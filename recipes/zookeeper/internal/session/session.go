package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/internal/feed"
	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
)

// Session is one ZooKeeper session. Open makes it; it ends once. All methods
// may be called from several goroutines. Paths are below the chroot.
type Session struct {
	acl   []jute.ACL // of what it creates, bare znodes and lines aside
	log   hclog.Logger
	wire  *conn.Wire
	lease *lease.Lease

	id int64 // set before Open returns

	status     *feed.Feed[status]
	events     *feed.Feed[recipes.Event]
	watches    watches
	receipts   receipts
	names      names // of CreateNamed
	bare       bareZnodes
	resumption resumption // of before Resume
	identity   identity
	dialects   dialects

	ctx    context.Context // ends when the session is lost, with the reason as its cause
	cancel context.CancelCauseFunc

	mu          sync.Mutex // also held while ctx is ended: no background work starts after that
	confirming  bool       // confirm runs
	inspections []*inspection
	work        sync.WaitGroup // Background
	calls       sync.WaitGroup // requests, and what stops go-zookeeper

	endOnce  sync.Once
	closing  sync.Once       // the first Close decides for how long it is tried
	patience context.Context // ends when that is over
	giveUp   context.CancelFunc
	shutdown chan struct{} // closed when everything behind the session is gone
	closeErr error         // set before that
}

// A DialFunc reaches a server.
type DialFunc = conn.DialFunc

// Open opens a session, as recipes.Opener documents. dial replaces the way to
// reach servers if it is not nil; it must be done with ctx when ctx ends.
func Open(ctx context.Context, cfg recipes.SessionConfig, dial DialFunc) (*Session, error) {
	s, err := prepare(cfg, dial, time.Now())
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	ctx, cancel := openBounded(ctx)
	defer cancel()
	if err := s.connect(ctx); err != nil {
		s.giveUp()
		s.Close(ctx)
		return nil, fmt.Errorf("open session: %w", err)
	}
	return s, nil
}

// openBounded is ctx with the deadline of an Open that was given none.
func openBounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
}

// prepare makes a session that has sent nothing. Its first contact counts from start.
func prepare(cfg recipes.SessionConfig, dial DialFunc, start time.Time) (*Session, error) {
	cfg, err := cfg.Normalize()
	if err != nil {
		return nil, err
	}
	s := &Session{
		acl:      toACL(cfg.ACL),
		identity: newIdentity(cfg),
		log:      cfg.Logger,
		lease:    lease.New(start),
		status:   feed.New(status{}),
		events:   feed.New(recipes.Event{State: recipes.Suspended}),
		shutdown: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.patience, s.giveUp = context.WithCancel(context.Background())
	s.wire, err = conn.New(conn.Config{
		SessionConfig: cfg, Dial: dial, Identity: s.identity.credentials(), Lease: s.lease, Life: s.ctx,
		Accepted: s.accepted, Connected: s.connected, Suspended: s.suspended, Lost: s.end, Fired: s.watches.fire,
	})
	return s, err
}

// connect starts go-zookeeper and waits for the session and its credentials.
func (s *Session) connect(ctx context.Context) error {
	s.mu.Lock()
	if s.ctx.Err() != nil { // nobody would close the connection
		s.mu.Unlock()
		return s.Err()
	}
	err := s.wire.Connect()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := s.Connected(ctx); err != nil || s.wire.Digest == nil {
		return err
	}
	_, err = readWith(ctx, s, "authenticate with", "digest", func(conn.Sender) (struct{}, error) {
		return struct{}{}, s.wire.Authenticate()
	})
	return err
}

// ID implements recipes.Session.
func (s *Session) ID() int64 { return s.id }

// Timeout implements recipes.Session. A server on which the session is resumed may
// grant another one.
func (s *Session) Timeout() time.Duration { return s.lease.Timeout() }

// State implements recipes.Session.
func (s *Session) State() recipes.State {
	if s.Err() != nil {
		return recipes.Lost // Done closes a moment before the event is told
	}
	e, _, _ := s.events.Get()
	return e.State
}

// Events implements recipes.Session.
func (s *Session) Events(ctx context.Context) <-chan recipes.Event { return s.events.Watch(ctx) }

// Notify calls f with the present state and then with every change, as Events tells
// them and one at a time. f must return soon, and not use the session. It is for those
// who serve many sessions: Events takes a goroutine for each.
func (s *Session) Notify(f func(recipes.Event)) { s.events.Notify(f) }

// Done implements recipes.Session.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err implements recipes.Session. It looks at the clock itself: after a pause of
// the process, whoever asks may be ahead of the timer.
func (s *Session) Err() error {
	if s.ctx.Err() == nil && s.lease.Remaining() <= 0 {
		s.lease.Check()
	}
	return context.Cause(s.ctx)
}

// Counters returns what the session has sent and received so far.
func (s *Session) Counters() recipes.Stats { return s.wire.Counters.Snapshot() }

// CountHandoff and CountFallback count for recipes.Stats.
func (s *Session) CountHandoff()  { s.wire.Counters.Handoffs.Add(1) }
func (s *Session) CountFallback() { s.wire.Counters.Fallbacks.Add(1) }

// Chance returns a random duration below limit, to keep clients apart that wait at
// the same time.
func (s *Session) Chance(limit time.Duration) time.Duration { return s.wire.Chance(limit) }

// LastContact, KnownContact and Contact are those of the session's lease.
func (s *Session) LastContact() time.Time  { return s.lease.LastContact() }
func (s *Session) KnownContact() time.Time { return s.lease.KnownContact() }
func (s *Session) Contact() time.Time      { return s.lease.Contact() }

// MaxPacket is the bound, in bytes, of one packet.
func (s *Session) MaxPacket() int { return s.wire.MaxPacket }

// Log is the session's logger.
func (s *Session) Log() hclog.Logger { return s.log }

// Background runs f in a goroutine that the session waits for when it ends; ctx
// ends with the session. It reports false, and runs nothing, once the session is
// over.
func (s *Session) Background(f func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.work.Go(func() { f(s.ctx) })
	return true
}

// OnLost runs f in a goroutine of its own when the session is lost, unless stop
// is called before.
func (s *Session) OnLost(f func()) (stop func() bool) { return context.AfterFunc(s.ctx, f) }
