// Package server serves the contract (package recipes) over gRPC, as
// zkrecipes.v1 defines it, on top of any recipes.Opener. It knows nothing of
// ZooKeeper and nothing of processes.
//
// Order of use: [New], a gRPC server with [Server.Options], [Server.Register], and
// at the end [Server.Close].
package server

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/telemetry"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// hearTimeout bounds how long a session that the plugin ends stays open for its host
// to hear of that first.
const hearTimeout = 200 * time.Millisecond

// closeTimeout bounds the closing of a session whose stream has ended. If it is too
// short, ZooKeeper's own timeout ends the session.
const closeTimeout = 2 * time.Second

// Config says what to serve. Only Open is required.
type Config struct {
	// Open opens the sessions.
	//
	// Sessions should have two methods. LastContact() time.Time returns when the
	// last request or ping that ZooKeeper has answered was sent. KnownContact()
	// time.Time returns the same for the last one of which ZooKeeper's leader is
	// known to have heard, or would be if the session held something. Without them
	// the host's clock has to assume that this was two thirds of the session timeout
	// ago: the longest silence that ZooKeeper's clients bear before they call
	// themselves disconnected.
	Open recipes.Opener
	// Resume resumes a session that another plugin has served, by the ticket that
	// its ResumeTicket method gave. contact is when ZooKeeper's leader is known to have
	// heard of it. Without Resume, sessions cannot be moved to another plugin.
	Resume func(ctx context.Context, cfg recipes.SessionConfig, ticket []byte, contact time.Time) (recipes.Client, error)
	// Lifetime keeps the sessions of a host that has died, until it is closed: something
	// that the host started may still rely on them. It needs [Connections]. nil has them
	// closed at once.
	Lifetime <-chan struct{}
	// Version is told to those who ask for Info.
	Version string
	// Build too: see version.Build.
	Build string
	// Logger has names added for what logs: "session" for sessions that come and go,
	// "rpc" for calls, "zookeeper" for what is given to Open. It gets no password
	// and no key. nil discards the log.
	Logger hclog.Logger
	// Limits bound what hosts can have.
	Limits Limits
	// TracerProvider and MeterProvider get the spans and the metrics of gRPC's
	// OpenTelemetry instrumentation. The parent of a span is its caller's in the
	// host. A provider that is nil gets nothing, and costs nothing.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Intercept is given every unary call, however it has come. nil does nothing.
	Intercept grpc.UnaryServerInterceptor

	unsent int // in the place of MaxUnsent, for tests
}

// Server implements the services of zkrecipes.v1.
type Server struct {
	cfg   Config
	log   hclog.Logger  // of sessions
	inner hclog.Logger  // that sessions are given
	stats stats.Handler // of calls; nil for none
	calls *carry.Dispatcher

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session
	reserved map[string]bool // handles of sessions that are resumed, or were
	attached int
	detached bool          // somebody was attached, and nobody is
	orphaned chan struct{} // closed when detached becomes true
	attach   chan struct{} // closed at the first Attach
	left     error         // of a session whose end ZooKeeper has not confirmed to Close

	running sync.WaitGroup // Open calls: added to under mu while not closed
}

// New returns a Server for cfg.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	cfg.Limits = cfg.Limits.defaults()
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &Server{
		cfg: cfg, log: cfg.Logger.Named("session"), inner: cfg.Logger.Named("zookeeper"), ctx: ctx, cancel: cancel,
		stats:    telemetry.Server(cfg.TracerProvider, cfg.MeterProvider),
		sessions: make(map[string]*session),
		reserved: make(map[string]bool),
		orphaned: make(chan struct{}),
		attach:   make(chan struct{}),
	}
	s.calls = carry.NewDispatcher(carry.Config{Intercept: s.unary(), Stats: s.stats, Message: s.cfg.Limits.Message})
	s.register(s.calls)
	return s
}

// Register adds the services to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	s.register(r)
	pb.RegisterCallServiceServer(r, pb.UnimplementedCallServiceServer{}) // what it did, ServeCalls does
}

// ServeCalls serves a connection that has calls and nothing else, until ctx or the
// connection ends. The handshake has agreed on carry.Protocol.
func (s *Server) ServeCalls(ctx context.Context, conn net.Conn) {
	var err error // that nobody is told of: the connection is closed
	defer func() { contain(recover(), s.rpcLog(), "a connection of calls", &err) }()
	s.calls.ServeConn(ctx, conn)
}

func (s *Server) register(r grpc.ServiceRegistrar) {
	pb.RegisterSessionServiceServer(r, sessionService{Server: s})
	pb.RegisterContenderServiceServer(r, contenderService{Server: s})
	pb.RegisterLockServiceServer(r, lockService{Server: s})
	pb.RegisterElectionServiceServer(r, electionService{Server: s})
	pb.RegisterGroupServiceServer(r, groupService{Server: s})
	pb.RegisterBarrierServiceServer(r, barrierService{Server: s})
	pb.RegisterDoubleBarrierServiceServer(r, doubleBarrierService{Server: s})
	pb.RegisterNamesServiceServer(r, namesService{Server: s})
	pb.RegisterConfigurationServiceServer(r, configurationService{Server: s})
	pb.RegisterCounterServiceServer(r, counterService{Server: s})
	pb.RegisterLatchServiceServer(r, latchService{Server: s})
	pb.RegisterGrantServiceServer(r, grantService{Server: s})
	pb.RegisterQueueServiceServer(r, queueService{Server: s})
	pb.RegisterTransactionServiceServer(r, transactionService{Server: s})
	pb.RegisterReadWriteLockServiceServer(r, readWriteLockService{Server: s})
	pb.RegisterSemaphoreServiceServer(r, semaphoreService{Server: s})
	pb.RegisterPluginServiceServer(r, pluginService{Server: s})
}

// Close refuses new sessions, tells the hosts of the present ones that they are
// lost, and closes them in ZooKeeper. It returns when that is done or ctx ends. An
// error that matches recipes.ErrUnknownOutcome says that ZooKeeper has not confirmed
// the end of a session, which lasts until its timeout at the latest. Close may be
// called again, and waits again.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(errShutdown)

	done := make(chan struct{})
	go func() { // ends when the sessions' own, bounded, closing does
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return s.leftBehind()
	case <-ctx.Done():
		return fmt.Errorf("closing sessions: %w", ctx.Err())
	}
}

// unconfirmed notes that a session which Close waits for has ended here, and may
// live on in ZooKeeper. Hosts of sessions that ended before were told in other ways.
func (s *Server) unconfirmed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && s.left == nil {
		s.left = err
	}
}

func (s *Server) leftBehind() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// Sessions returns how many sessions are open.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// enter counts an Open call, or refuses it after Close.
func (s *Server) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errNoMore
	}
	s.running.Add(1)
	return nil
}

// add gives the session a handle, if it has none from before.
func (s *Server) add(ss *session) {
	if ss.handle == "" {
		ss.handle = uuid.NewString()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[ss.handle] = ss
}

func (s *Server) remove(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, ss.handle)
	s.orphan()
}

// session finds a session by its handle. If it is not found it has ended, and its
// stream has told why.
func (s *Server) session(handle string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ss, ok := s.sessions[handle]; ok {
		return ss, nil
	}
	return nil, fmt.Errorf("%w: the plugin has no such session, or no longer", recipes.ErrSessionLost)
}
