package session

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/zkrecipes/zkrecipes/internal/expiry"
	"github.com/zkrecipes/zkrecipes/internal/feed"
	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
)

// Session is one ZooKeeper session. Open opens it, and it ends once. All methods are safe for
// concurrent use. Paths are below the chroot.
type Session struct {
	acl     []jute.ACL // of all znodes that the session creates, except bare znodes and the paths of wait queues
	aclSize int        // in a packet
	bareACL []jute.ACL // of bare znodes and the paths of wait queues

	log   hclog.Logger
	wire  *conn.Wire
	lease *lease.Lease

	id int64 // set before Open returns

	status      *feed.Feed[status]
	events      *feed.Feed[recipes.Event]
	watches     watches
	inspections inspections
	ephemerals  ephemerals
	receipts    receipts
	deletions   deletions
	names       names // see CreateNamed
	bare        bareZnodes
	resumption  resumption    // see Resume
	pace        *rate.Limiter // nil: no limit
	dialects    dialects

	ctx    context.Context // done when the session is lost; the cause is the reason
	cancel context.CancelCauseFunc

	mu         sync.Mutex     // also held while ctx is cancelled: no background work starts after that
	confirming bool           // confirm runs
	work       sync.WaitGroup // see Background
	calls      sync.WaitGroup // requests, and the goroutines that stop go-zookeeper

	endOnce      sync.Once
	closing      sync.Once       // the context of the first Close limits how long closing is tried
	patience     context.Context // done when that limit is reached
	giveUp       context.CancelFunc
	reconfigured chan struct{} // holds one element: the ensemble has other members

	shutdown chan struct{}     // closed when all of the session's goroutines have ended
	closeErr error             // set before shutdown is closed
	onEnd    func()            // see OnEnd
	meters   *telemetry.Meters // see Report
	over     bool              // onEnd was called, or is no longer called
}

// A DialFunc connects to a server.
type DialFunc = conn.DialFunc

// Open opens a session: see recipes.Opener. If dial is not nil, it replaces the network, and
// must return when its context is done.
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

// openBounded gives ctx the default deadline of Open if it has no deadline.
func openBounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
}

// prepare returns a session that has sent nothing. Its first contact counts from start.
func prepare(cfg recipes.SessionConfig, dial DialFunc, start time.Time) (*Session, error) {
	cfg, err := cfg.Normalize()
	if err != nil {
		return nil, err
	}
	acl, identity := toACL(cfg.ACL), newIdentity(cfg)
	s := &Session{
		acl:      acl,
		aclSize:  sizeOf(acl),
		bareACL:  identity.acl(acl),
		log:      cfg.Logger,
		lease:    lease.New(start),
		status:   feed.New(status{}),
		events:   feed.New(recipes.Event{State: recipes.Suspended}),
		shutdown: make(chan struct{}),

		reconfigured: make(chan struct{}, 1),
	}
	s.ephemerals.counting = make(chan struct{}, 1)
	if cfg.ReadsPerSecond > 0 {
		s.pace = newPace(rate.Limit(cfg.ReadsPerSecond))
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.patience, s.giveUp = context.WithCancel(context.Background())
	s.wire, err = conn.New(conn.Config{
		SessionConfig: cfg, Dial: dial, Identity: identity.credentials(), Lease: s.lease, Life: s.ctx,
		Accepted: s.accepted, Connected: s.connected, Suspended: s.suspended, Lost: s.end, Fired: s.fired,
	})
	return s, err
}

// connect starts go-zookeeper and waits for the session.
func (s *Session) connect(ctx context.Context) error {
	s.mu.Lock()
	if s.ctx.Err() != nil { // no goroutine would close the connection
		s.mu.Unlock()
		return s.Err()
	}
	err := s.wire.Connect()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = s.Connected(ctx)
	return err
}

func (s *Session) ID() int64 { return s.id }

// Timeout implements recipes.Session. It is the smallest timeout that a server has granted to
// the session. Another server, to which it moves, may grant less.
func (s *Session) Timeout() time.Duration { return s.lease.Timeout() }

func (s *Session) State() recipes.State {
	if s.Err() != nil {
		return recipes.Lost // Done closes a moment before the event is set
	}
	e, _, _ := s.events.Get()
	return e.State
}

func (s *Session) Events(ctx context.Context) <-chan recipes.Event { return s.events.Watch(ctx) }

// Notify calls f with the current state, and then with every change, one call at a time. f must
// return soon and must not use the session. It is meant for programs that serve many sessions:
// Events needs a goroutine for each.
func (s *Session) Notify(f func(recipes.Event)) { s.events.Notify(f) }

func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err implements recipes.Session. It checks the deadline itself, because after a pause of the
// process the caller may run before the timer.
func (s *Session) Err() error {
	if s.ctx.Err() == nil && s.lease.Remaining() <= 0 {
		s.lease.Check()
	}
	return context.Cause(s.ctx)
}

// Counters returns the session's traffic so far, and the kind of its servers.
func (s *Session) Counters() recipes.Stats {
	stats := s.wire.Counters.Snapshot()
	stats.Server = s.wire.Server()
	return stats
}

// Continues returns an ErrUnsupported if the servers never continue a session on another connection.
func (s *Session) Continues() error {
	if s.wire.Keeper() {
		return errKeeperSession
	}
	return nil
}

var errKeeperSession = fmt.Errorf("%w: ClickHouse Keeper does not continue a session on another connection, so no other process can resume it", recipes.ErrUnsupported)

// CountHandoff and CountFallback increment the counters in recipes.Stats.
func (s *Session) CountHandoff()  { s.wire.Counters.Handoffs.Add(1) }
func (s *Session) CountFallback() { s.wire.Counters.Fallbacks.Add(1) }

// Remaining returns the time until the session's deadline.
func (s *Session) Remaining() time.Duration { return s.lease.Remaining() }

// OnEnd calls f once when the session has ended and sends nothing more, before Close returns.
// Only one call of OnEnd is allowed.
func (s *Session) OnEnd(f func()) {
	s.mu.Lock()
	over := s.over
	s.onEnd = f
	s.mu.Unlock()
	if over {
		f()
	}
}

// RandomBelow returns a random duration below limit. It spreads clients that wait at the same time.
func (s *Session) RandomBelow(limit time.Duration) time.Duration { return s.wire.RandomBelow(limit) }

// LastContact, KnownContact and Contact return the contacts of the session's lease.
func (s *Session) LastContact() time.Time  { return s.lease.LastContact() }
func (s *Session) KnownContact() time.Time { return s.lease.KnownContact() }
func (s *Session) Contact() time.Time      { return s.lease.Contact() }

// MaxPacket returns the largest size of a packet, in bytes.
func (s *Session) MaxPacket() int { return s.wire.MaxPacket }

// packetSlack is room in a packet for headers and the path's sequence number.
const packetSlack = 512

// fits checks that a packet has room for data and the given number of other bytes. The error
// says how many bytes of data fit, because MaxPacket limits the whole packet.
func (s *Session) fits(path string, data []byte, beside int) error {
	most := s.wire.MaxPacket - len(s.full(path)) - beside - s.aclSize
	if len(data) > most {
		return fmt.Errorf("%w: %d bytes of data for %s; at most %d fit into a packet of SessionConfig.MaxPacket (max_packet), %d bytes; raise it and the servers' jute.maxbuffer, or write less",
			recipes.ErrTooLarge, len(data), path, max(most, 0), s.wire.MaxPacket)
	}
	return nil
}

func sizeOf(acl []jute.ACL) int {
	size := 0
	for _, a := range acl {
		size += len(a.Scheme) + len(a.ID) + 12
	}
	return size
}

// Log returns the session's logger.
func (s *Session) Log() hclog.Logger { return s.log }

// Background runs f in a goroutine. The session waits for it when it ends. ctx is done when the
// session is lost. Once the session has ended, Background runs nothing and returns false.
func (s *Session) Background(f func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.work.Go(func() { f(s.ctx) })
	return true
}

// OnLost runs f in a new goroutine when the session is lost, unless stop is called earlier.
func (s *Session) OnLost(f func()) (stop func() bool) { return context.AfterFunc(s.ctx, f) }

// full returns the path at the server.
func (s *Session) full(path string) string {
	if path == "/" && s.wire.Chroot != "" {
		return s.wire.Chroot
	}
	return s.wire.Chroot + path
}

// local is the reverse of full.
func (s *Session) local(path string) string {
	return strings.TrimPrefix(path, s.wire.Chroot)
}

type status struct {
	connected   bool
	connections int // established so far
}

// begin starts what lasts as long as the session. The timer of its deadline does not run while the
// machine is suspended. So the deadline is checked when the machine wakes.
func (s *Session) begin() {
	s.lease.Start(s.end)
	if s.wire.Dial == nil { // virtual time has no suspension, and would wait for this goroutine
		context.AfterFunc(s.ctx, expiry.OnWake(s.lease.Check))
	}
	if s.wire.FollowServers {
		s.calls.Go(s.followServers)
	}
}

// accepted runs when a server has accepted a connection into the session. Package conn refuses any
// other session.
func (s *Session) accepted(id int64) {
	s.mu.Lock()
	before := s.id
	if before == 0 {
		s.id = id
		if s.ctx.Err() == nil { // otherwise end has already tried to stop the lease
			s.begin()
		}
	}
	s.mu.Unlock()
	switch before {
	case 0:
		if s.wire.Keeper() {
			s.log.Warn("the server is ClickHouse Keeper, not ZooKeeper: a lock promises less there (docs/servers.md); use guarded writes or fencing tokens", "session", fmt.Sprintf("%#x", uint64(id)))
		}
	case id:
		s.wire.Counters.Reconnects.Add(1)
	}
}

func (s *Session) connected() {
	// Set the event first: Open, and other waiters that the status wakes, then find the new
	// state.
	s.events.Set(recipes.Event{State: recipes.Connected})
	was, _, _ := s.status.Get()
	s.status.Set(status{connected: true, connections: was.connections + 1})
}

// suspended runs when a connection has ended.
func (s *Session) suspended() {
	s.watches.disconnected()
	s.inspections.disconnected()
	was, _, _ := s.status.Get()
	if !was.connected {
		return
	}
	s.status.Set(status{connections: was.connections})
	s.events.Set(recipes.Event{State: recipes.Suspended})
}

// fired runs when a watch has fired.
func (s *Session) fired(event conn.Event, path string) {
	s.watches.fire(event, path)
	if path == membershipPath {
		select {
		case s.reconfigured <- struct{}{}:
		default: // followServers reads it again already
		}
	}
	if event == conn.ChildrenChanged || event == conn.NodeDeleted {
		s.inspections.fire(path)
	}
}

// Connected waits until the session is connected, and returns a channel that closes when the
// connection ends. It fails when ctx is done (ErrUnavailable) or the session is lost.
func (s *Session) Connected(ctx context.Context) (<-chan struct{}, error) {
	_, lost, err := s.connectedAfter(ctx, 0)
	return lost, err
}

// connectedAfter waits for a connection later than the n-th, and returns its number.
func (s *Session) connectedAfter(ctx context.Context, n int) (connection int, lost <-chan struct{}, err error) {
	for {
		if err := s.Err(); err != nil {
			return 0, nil, err
		}
		now, changed, _ := s.status.Get()
		if now.connected && now.connections > n {
			return now.connections, changed, nil
		}
		select {
		case <-changed:
		case <-s.Done():
		case <-ctx.Done():
			if err := s.Err(); err != nil {
				return 0, nil, err // ctx may be the session's, or have ended with it
			}
			return 0, nil, s.unavailable("waiting for a connection", ctx)
		}
	}
}

// mostDialects limits how many paths a session remembers. Above it, the session forgets all of
// them: a session that lives long may use each of its paths once.
const mostDialects = 4096

// dialects records in which dialect a session uses each path. Contenders in two dialects at one
// path do not exclude each other, so a session uses only one.
type dialects struct {
	mu     sync.Mutex
	byPath map[string]recipes.Dialect
}

// InDialect returns the recipe that open returns, if its dialect is that of the path. On error the
// path keeps the dialect that it had before.
func InDialect[T any](s *Session, path string, dialect recipes.Dialect, open func() (T, error)) (T, error) {
	recipe, err := open()
	if err == nil {
		err = s.UseDialect(path, dialect)
	}
	if err != nil {
		var none T
		return none, err
	}
	return recipe, nil
}

// UseDialect records the dialect of a recipe, and fails if the path has another one. It ignores
// an invalid dialect, which the recipe itself reports.
func (s *Session) UseDialect(path string, dialect recipes.Dialect) error {
	dialect, err := dialect.Normalize()
	if err != nil {
		return nil
	}
	d := &s.dialects
	d.mu.Lock()
	defer d.mu.Unlock()
	if before, used := d.byPath[path]; used && before != dialect {
		return fmt.Errorf("%w: this session has already used %s in the dialect %s, not in %s: give all recipes of a path the same dialect", recipes.ErrInvalid, path, before, dialect)
	}
	if d.byPath == nil || len(d.byPath) >= mostDialects {
		d.byPath = make(map[string]recipes.Dialect)
	}
	d.byPath[path] = dialect
	return nil
}

// Refuse returns the error of a recipe that has met a third-party contender at path. Afterwards
// the caller may use the path in that contender's dialect. If a contender of the first dialect
// is still there, the recipe will refuse it in turn.
func (s *Session) Refuse(path string, met recipes.ForeignError) error {
	s.dialects.mu.Lock()
	defer s.dialects.mu.Unlock()
	delete(s.dialects.byPath, path)
	return &met
}
