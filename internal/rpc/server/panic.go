package server

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
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
		if err := checkRequest(r); err != nil {
			return nil, toStatus(err)
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

// toStatus returns the status that the host gets for a handler's error. An error of gRPC
// itself, or with a place in the wait queue, is a status already and is returned unchanged.
func toStatus(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return wire.ToStatus(err, nil)
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

// contained calls run, and converts a panic to an error.
func (s *Server) contained(ctx context.Context, t target, joined func(recipes.Place), run runner) (_ *grant, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = logPanic(p, s.rpcLog(), "an acquirer")
		}
	}()
	return run(ctx, t, joined)
}
