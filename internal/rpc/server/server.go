// Package server serves the contract (package recipes) over gRPC, by the protocol zkrecipes.v1.
// Any recipes.Opener can open its sessions. The package does not depend on ZooKeeper or on how
// the plugin process is run.
//
// Order of use: [New], a gRPC server with [Server.Options], [Server.Register], and at the end
// [Server.Close].
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

// lastReadTimeout bounds how long the plugin waits before it closes a session in ZooKeeper, so
// that the host can read the loss first.
const lastReadTimeout = 200 * time.Millisecond

// closeTimeout bounds the closing of a session whose stream has ended. If the close takes
// longer, ZooKeeper's timeout ends the session.
const closeTimeout = 2 * time.Second

// Config configures a Server. Only Open is required.
type Config struct {
	// Open opens the sessions.
	//
	// A session should have two more methods. LastContact() time.Time returns when the last request
	// or ping that ZooKeeper has answered was sent. KnownContact() time.Time returns the same
	// for the requests that ZooKeeper's leader is known to have received: while the session holds
	// something, its deadline counts from that time. Without these methods the host's clock must
	// assume that the contact was two thirds of the session timeout ago: the longest silence after
	// which ZooKeeper's clients still consider themselves connected.
	Open recipes.Opener
	// Resume is that of package plugin. ticket is from the ResumeTicket method of a session that
	// another plugin has served. contact is the last contact that ZooKeeper's leader is known to
	// have received.
	Resume func(ctx context.Context, cfg recipes.SessionConfig, ticket []byte, contact time.Time) (recipes.Client, error)
	// Lifetime keeps the sessions of a host that has died, until Lifetime is closed: a process
	// that the host started may still rely on them. It needs [Connections]. If Lifetime is
	// nil, the sessions of a dead host are closed at once.
	Lifetime <-chan struct{}
	// Version and Build are returned by Info.
	Version, Build string
	// Logger gets names appended per subsystem: "session" for sessions that begin and end,
	// "rpc" for calls, "zookeeper" for sessions opened by Open. No password and no key is
	// logged. nil discards the log.
	Logger hclog.Logger
	Limits Limits
	// TracerProvider and MeterProvider are those of plugin.Telemetry.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Intercept is called for every unary call, over either transport. nil does nothing.
	Intercept grpc.UnaryServerInterceptor

	unsent int // replaces MaxUnsent in tests
}

// Server implements the services of zkrecipes.v1.
type Server struct {
	cfg   Config
	log   hclog.Logger  // of sessions
	inner hclog.Logger  // of the recipes in the sessions
	stats stats.Handler // of calls; nil for none
	calls *carry.Dispatcher

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc

	attached, orphaned context.Context // end with the first call of the functions below
	attach, orphan     context.CancelFunc

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session
	reserved map[string]bool // handles of resumed sessions
	hosts    int             // that are attached
	closeErr error           // of a session whose close was not confirmed

	running sync.WaitGroup // Open calls: added to under mu while not closed
}

// New returns a Server for cfg.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	cfg.Limits = cfg.Limits.Normalize()
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &Server{
		cfg: cfg, log: cfg.Logger.Named("session"), inner: cfg.Logger.Named("zookeeper"), ctx: ctx, cancel: cancel,
		stats:    telemetry.Server(cfg.TracerProvider, cfg.MeterProvider),
		sessions: make(map[string]*session),
		reserved: make(map[string]bool),
	}
	s.attached, s.attach = context.WithCancel(context.Background())
	s.orphaned, s.orphan = context.WithCancel(context.Background())
	s.calls = carry.NewDispatcher(carry.Config{Intercept: s.unary(), Stats: s.stats, Message: s.cfg.Limits.Message})
	s.Register(s.calls)
	return s
}

// Register adds the services to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	for _, d := range []*grpc.ServiceDesc{
		&pb.PluginService_ServiceDesc, &pb.SessionService_ServiceDesc, &pb.GrantService_ServiceDesc, &pb.ContenderService_ServiceDesc,
		&pb.ReadWriteLockService_ServiceDesc, &pb.ElectionService_ServiceDesc, &pb.QueueService_ServiceDesc,
		&pb.TransactionService_ServiceDesc, &pb.GroupService_ServiceDesc, &pb.NamesService_ServiceDesc,
		&pb.BarrierService_ServiceDesc, &pb.DoubleBarrierService_ServiceDesc, &pb.ConfigurationService_ServiceDesc,
		&pb.CounterService_ServiceDesc, &pb.LatchService_ServiceDesc,
	} {
		r.RegisterService(d, service{Server: s})
	}
}

// ServeCalls serves a connection for calls alone, until ctx or the connection ends. Its TLS
// handshake must have selected carry.Protocol.
func (s *Server) ServeCalls(ctx context.Context, conn net.Conn) {
	var err error // not reported: the closed connection is enough
	defer func() { contain(recover(), s.rpcLog(), "a connection of calls", &err) }()
	s.calls.ServeConn(ctx, conn)
}

// service implements all services: no two of them have a method of the same name.
type service struct {
	*Server
	pb.UnimplementedBarrierServiceServer
	pb.UnimplementedDoubleBarrierServiceServer
	pb.UnimplementedConfigurationServiceServer
	pb.UnimplementedCounterServiceServer
	pb.UnimplementedLatchServiceServer
	pb.UnimplementedGrantServiceServer
	pb.UnimplementedElectionServiceServer
	pb.UnimplementedContenderServiceServer
	pb.UnimplementedReadWriteLockServiceServer
	pb.UnimplementedNamesServiceServer
	pb.UnimplementedGroupServiceServer
	pb.UnimplementedPluginServiceServer
	pb.UnimplementedQueueServiceServer
	pb.UnimplementedSessionServiceServer
	pb.UnimplementedTransactionServiceServer
}

// Close refuses new sessions, notifies the hosts of the current ones of their loss, and
// closes them in ZooKeeper. It returns when that is done or ctx ends. An error that matches
// recipes.ErrUnknownOutcome says that ZooKeeper has not confirmed the end of a session;
// ZooKeeper ends it at its timeout. Close may be called again, and waits again.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(errShutdown)

	done := make(chan struct{})
	go func() { // ends when the sessions are closed, which is bounded
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.closeErr
	case <-ctx.Done():
		return fmt.Errorf("closing sessions: %w", ctx.Err())
	}
}

// unconfirmed records, for Close, that a session has ended here and may still exist in
// ZooKeeper. Before Close it does nothing: that session's host gets the error in another way.
func (s *Server) unconfirmed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && s.closeErr == nil {
		s.closeErr = err
	}
}

// Sessions returns how many sessions are open.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// countOpen counts an Open call, or refuses it after Close.
func (s *Server) countOpen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errNoMore
	}
	s.running.Add(1)
	return nil
}

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
	s.orphanIfAlone()
}

// session finds a session by its handle. If it is not found, it has ended, and its stream has
// reported the reason.
func (s *Server) session(handle string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ss, ok := s.sessions[handle]; ok {
		return ss, nil
	}
	return nil, fmt.Errorf("%w: the plugin has no such session; it may have ended", recipes.ErrSessionLost)
}
