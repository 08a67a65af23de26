package server

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Options returns the options of a gRPC server that serves s: the limits, and telemetry if
// configured. They also convert errors to statuses. A panic in a handler
// becomes an error of that call (recipes.ErrInternal) and is logged with its stack. The
// plugin survives, because other sessions depend on it.
func (s *Server) Options() []grpc.ServerOption {
	l := newLimiter(s.cfg.Limits)
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(s.cfg.Limits.Message),
		grpc.MaxConcurrentStreams(MaxCalls),
		grpc.StaticStreamWindowSize(wire.StreamWindow),
		grpc.StaticConnWindowSize(wire.ConnectionWindow),
		grpc.ChainUnaryInterceptor(s.unary()),
		grpc.ChainStreamInterceptor(containStream(s.rpcLog()), l.stream),
	}
	if s.stats != nil {
		options = append(options, grpc.StatsHandler(s.stats))
	}
	return options
}

func (s *Server) rpcLog() hclog.Logger { return s.cfg.Logger.Named("rpc") }

// unary returns the interceptor of unary calls over either transport.
func (s *Server) unary() grpc.UnaryServerInterceptor {
	contain, next := containUnary(s.rpcLog()), s.cfg.Intercept
	if next == nil {
		return contain
	}
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		return contain(ctx, r, info, func(ctx context.Context, r any) (any, error) { return next(ctx, r, info, handle) })
	}
}

func containUnary(logger hclog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
		defer func() { contain(recover(), logger, info.FullMethod, &err) }()
		if r, ok := r.(interface{ GetRequestId() string }); ok && len(r.GetRequestId()) > MaxRequestID {
			return nil, toStatus(fmt.Errorf("%w: request_id has %d bytes; it can have %d", recipes.ErrInvalid, len(r.GetRequestId()), MaxRequestID))
		}
		answer, err = handle(ctx, r)
		return answer, toStatus(err)
	}
}

func containStream(logger hclog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, st grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
		defer func() { contain(recover(), logger, info.FullMethod, &err) }()
		return toStatus(handle(srv, st))
	}
}

// toStatus returns the status that the host gets for a handler's error. A status is returned
// unchanged.
func toStatus(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return wire.ToStatus(err)
}

// contain sets err to an error for the host if there was a panic.
func contain(panicked any, logger hclog.Logger, where string, err *error) {
	if panicked != nil {
		*err = toStatus(logPanic(panicked, logger, where))
	}
}

// logPanic logs a panic, and returns the error for the host. The error does not contain the
// panic's value, which may contain application data.
func logPanic(panicked any, logger hclog.Logger, where string) error {
	logger.Error("panic; please report it", "in", where, "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
	return fmt.Errorf("%w: %s panicked; the plugin's log has more", recipes.ErrInternal, where)
}

// inGoroutine runs f in a goroutine and waits for it. A panic becomes an error.
func (s *Server) inGoroutine(what string, f func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { contain(recover(), s.rpcLog(), what, &err) }()
		err = f()
	}()
	<-done
	return err
}

// The default limits. They are far above the needs of an application, and protect against one
// that forgets to release.
const (
	MaxSessions = 16 << 10
	MaxGrants   = 64 << 10
	MaxWatches  = 16 << 10
	MaxMessage  = 64 << 20
)

// MaxRequestID is the longest request id, in bytes. A session remembers many of them.
const MaxRequestID = 128

// MaxUnsent bounds what may wait to be sent on the stream of one session, in bytes. Each
// message counts messageOverhead more than its size: that is its cost in memory. A host with
// more unsent messages is considered not to read, and its session ends. The bound allows one
// KiB for each of MaxGrants, because all grants can be lost at once.
const (
	MaxUnsent       = 64 << 20
	messageOverhead = 256
)

// Limits are those of package plugin. 0 selects the constant above. Grants also bounds the sites
// of a session in transactions.
//
// What waits to be sent to a host has separate limits, which are constants: MaxUnsent and,
// for calls, those of package carry. For each watch only the latest value waits.
type Limits struct{ Sessions, Grants, Watches, Message int }

// Normalize returns the limits with defaults filled in.
func (l Limits) Normalize() Limits {
	return Limits{
		Sessions: cmp.Or(l.Sessions, MaxSessions), Grants: cmp.Or(l.Grants, MaxGrants),
		Watches: cmp.Or(l.Watches, MaxWatches), Message: cmp.Or(l.Message, MaxMessage),
	}
}

// MaxCalls bounds the gRPC calls and streams on one connection. If a host does not
// read, gRPC keeps the answers of all its calls, some 2 KiB for the smallest. Beyond the
// limit, gRPC makes the host wait. Calls on a connection for calls do not count.
const MaxCalls = 128 << 10

// limiter counts streams, and refuses those beyond the limits.
type limiter struct {
	limits  Limits
	mu      sync.Mutex
	streams map[string]int // of each session besides its own; those of all sessions are at ""
}

func newLimiter(l Limits) *limiter { return &limiter{limits: l, streams: make(map[string]int)} }

// stream is an interceptor.
func (l *limiter) stream(srv any, st grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if info.FullMethod == pb.SessionService_Open_FullMethodName {
		if err := l.add(""); err != nil {
			return err
		}
		defer l.remove("")
		return handle(srv, st)
	}
	c := &watchStream{ServerStream: st, limiter: l}
	defer func() {
		if c.session != "" {
			l.remove(c.session)
		}
	}()
	return handle(srv, c)
}

// add counts a stream of a session besides its own, or a session's own if session is empty.
func (l *limiter) add(session string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n := l.streams[session]; {
	case session == "" && n >= l.limits.Sessions:
		return fmt.Errorf("%w: the plugin has %d sessions", recipes.ErrLimit, n)
	case session != "" && n >= l.limits.Watches:
		return fmt.Errorf("%w: the session has %d streams besides its own", recipes.ErrLimit, n)
	}
	l.streams[session]++
	return nil
}

func (l *limiter) remove(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[session]--; l.streams[session] == 0 {
		delete(l.streams, session)
	}
}

// watchStream is a stream that belongs to the session named in its first message.
type watchStream struct {
	grpc.ServerStream
	limiter *limiter
	session string
}

// RecvMsg refuses the stream if its session has too many.
func (c *watchStream) RecvMsg(m any) error {
	if err := c.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	named, ok := m.(interface{ GetSession() string })
	if !ok || c.session != "" || named.GetSession() == "" {
		return nil
	}
	if err := c.limiter.add(named.GetSession()); err != nil {
		return err
	}
	c.session = named.GetSession()
	return nil
}
