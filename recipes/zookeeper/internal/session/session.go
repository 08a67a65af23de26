package session

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
	"github.com/zkrecipes/zkrecipes/internal/feed"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Session is one ZooKeeper session. Open makes it; it ends once. All methods
// may be called from several goroutines. Paths are below the chroot.
type Session struct {
	cfg    recipes.SessionConfig
	acl    []zk.ACL // of what it creates, places and lines aside
	log    hclog.Logger
	wire   *wire
	dialer *dialer
	conn   *zk.Conn
	ended  <-chan zk.Event // closed when go-zookeeper's goroutines are gone

	id int64 // set before Open returns

	status   *feed.Feed[status]
	events   *feed.Feed[recipes.Event]
	watches  watches
	receipts receipts
	names    names // of CreateNamed
	places   places
	kept     kept // of before Resume
	identity identity
	dialects dialects

	ctx    context.Context // ends when the session is lost, with the reason as its cause
	cancel context.CancelCauseFunc

	holds atomic.Int64 // see BeginHold

	mu          sync.Mutex
	over        bool // no background work starts any more
	confirming  bool // confirm runs
	inspections []*inspection
	deadline    *time.Timer
	work        sync.WaitGroup // Background
	calls       sync.WaitGroup // requests that go-zookeeper has

	endOnce  sync.Once
	closing  sync.Once       // the first Close decides for how long it is tried
	patience context.Context // ends when that is over
	giveUp   context.CancelFunc
	shutdown chan struct{} // closed when everything behind the session is gone
	closeErr error         // set before that
}

// Open opens a session, as recipes.Opener documents. dial replaces the way to
// reach servers if it is not nil; it must be done with ctx when ctx ends.
func Open(ctx context.Context, cfg recipes.SessionConfig, dial DialFunc) (*Session, error) {
	s, err := prepare(cfg, dial)
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

// prepare makes a session that has sent nothing.
func prepare(cfg recipes.SessionConfig, dial DialFunc) (*Session, error) {
	cfg, err := cfg.Normalize()
	if err != nil {
		return nil, err
	}
	if dial == nil {
		dial = defaultDial
	}
	s := &Session{
		cfg:      cfg,
		acl:      toACL(cfg.ACL),
		identity: newIdentity(cfg),
		log:      cfg.Logger,
		status:   feed.New(status{}),
		events:   feed.New(recipes.Event{State: recipes.Suspended}),
		shutdown: make(chan struct{}),
	}
	s.wire = newWire(s.watches.fire)
	s.wire.authReplied = s.authReplied
	if s.dialer, err = newDialer(cfg, s.wire, dial); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.patience, s.giveUp = context.WithCancel(context.Background())
	return s, nil
}

// connect starts go-zookeeper and waits for the session and its credentials.
func (s *Session) connect(ctx context.Context) error {
	s.mu.Lock()
	if s.over { // nobody would close the connection
		s.mu.Unlock()
		return s.Err()
	}
	conn, ended, err := zk.Connect(s.cfg.Servers, s.cfg.SessionTimeout,
		zk.WithHostProvider(s.dialer),
		zk.WithDialer(s.dialer.Dial),
		zk.WithEventCallback(s.callback),
		zk.WithLogger(zkLogger{s.log}),
		zk.WithLogInfo(s.log.IsDebug()),
		// Both are allocated at once for each connection. Of what go-zookeeper
		// still does, credentials are the largest. Encoding into a buffer that is
		// just too short can panic.
		zk.WithMaxBufferSize(maxLibraryReply),
		zk.WithMaxConnBufferSize(librarySlack+s.credentialsSize()),
	)
	s.conn, s.ended = conn, ended
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := s.Connected(ctx); err != nil {
		return err
	}
	if s.cfg.Digest == nil {
		return nil
	}
	credentials := s.cfg.Digest.User + ":" + s.cfg.Digest.Password
	// By go-zookeeper, which gives them again on each connection.
	_, err = readWith(ctx, s, "authenticate with", "digest", func(requests) (struct{}, error) {
		return struct{}{}, s.conn.AddAuth("digest", []byte(credentials))
	})
	s.wire.reauth.Store(err == nil)
	return err
}

const (
	// maxLibraryReply is more than the largest reply that go-zookeeper gets: it has a
	// header and nothing else.
	maxLibraryReply = 128
	// librarySlack is more than go-zookeeper's requests have beside credentials.
	librarySlack = 128
)

func (s *Session) credentialsSize() int {
	if s.cfg.Digest == nil {
		return 0
	}
	return len(s.cfg.Digest.User) + len(s.cfg.Digest.Password)
}

// ID implements recipes.Session.
func (s *Session) ID() int64 { return s.id }

// Timeout implements recipes.Session. A server on which the session is resumed may
// grant another one.
func (s *Session) Timeout() time.Duration { return s.wire.sessionTimeout() }

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
	if s.ctx.Err() == nil && s.left() <= 0 {
		s.checkDeadline()
	}
	return context.Cause(s.ctx)
}

// Counters returns what the session has sent and received so far.
func (s *Session) Counters() recipes.Stats { return s.wire.counters.snapshot() }

// MaxPacket is the bound, in bytes, of one packet.
func (s *Session) MaxPacket() int { return s.cfg.MaxPacket }

// Log is the session's logger.
func (s *Session) Log() hclog.Logger { return s.log }

// Background runs f in a goroutine that the session waits for when it ends; ctx
// ends with the session. It reports false, and runs nothing, once the session is
// over.
func (s *Session) Background(f func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.work.Go(func() { f(s.ctx) })
	return true
}

// OnLost runs f in a goroutine of its own when the session is lost, unless stop
// is called before.
func (s *Session) OnLost(f func()) (stop func() bool) { return context.AfterFunc(s.ctx, f) }

// zkLogger gives go-zookeeper's messages to the session's logger.
type zkLogger struct{ log hclog.Logger }

func (l zkLogger) Printf(format string, args ...any) {
	l.log.Debug(fmt.Sprintf("go-zookeeper: "+format, args...))
}
