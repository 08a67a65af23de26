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

// Options are what a gRPC server needs that serves s: the limits, and telemetry if
// it is wanted. They also give errors the form in which a host reads them. A panic
// in a handler becomes an error of that call (recipes.ErrInternal) and is logged
// with its stack. The plugin lives on, because other sessions depend on it.
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

// unary is the interceptor of unary calls, however they come.
func (s *Server) unary() grpc.UnaryServerInterceptor {
	contain, next := containUnary(s.rpcLog()), s.cfg.Intercept
	if next == nil {
		return contain
	}
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		return contain(ctx, r, info, func(ctx context.Context, r any) (any, error) { return next(ctx, r, info, handle) })
	}
}

// loggerKey is the key of the logger in the context of a call.
type loggerKey struct{}

func containUnary(logger hclog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
		defer func() { contain(recover(), logger, info.FullMethod, &err) }()
		if err := checkRequest(r); err != nil {
			return nil, toStatus(err)
		}
		answer, err = handle(context.WithValue(ctx, loggerKey{}, logger), r)
		return answer, toStatus(err)
	}
}

func containStream(logger hclog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, st grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
		defer func() { contain(recover(), logger, info.FullMethod, &err) }()
		return toStatus(handle(srv, st))
	}
}

// toStatus makes the status that the host gets of a handler's error. Errors of gRPC
// itself, and errors with a place in line, are a status already.
func toStatus(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return wire.ToStatus(err, nil)
}

// contain makes an error of a panic, for the host.
func contain(panicked any, logger hclog.Logger, where string, err *error) {
	if panicked != nil {
		*err = toStatus(noted(panicked, logger, where))
	}
}

// noted logs a panic. The host does not get its value: it may contain what the
// application stores, which errors never show.
func noted(panicked any, logger hclog.Logger, where string) error {
	logger.Error("panic; please report it", "in", where, "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
	return fmt.Errorf("%w: %s panicked; the plugin's log has more", recipes.ErrInternal, where)
}

// apart runs f in a goroutine of its own and waits for it. A panic is an error.
func (s *Server) apart(what string, f func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { contain(recover(), s.rpcLog(), what, &err) }()
		err = f()
	}()
	<-done
	return err
}

// contained has run work on a target, and makes an error of its panic: it may run in a
// goroutine of its own, where no interceptor is. ctx is that of the call.
func contained(ctx context.Context, t target, run func(context.Context, target, func(recipes.Place)) (*grant, error)) acquirer {
	logger, ok := ctx.Value(loggerKey{}).(hclog.Logger)
	if !ok {
		logger = hclog.NewNullLogger()
	}
	return func(ctx context.Context, joined func(recipes.Place)) (g *grant, err error) {
		defer func() {
			if p := recover(); p != nil {
				g, err = nil, noted(p, logger, "an acquirer")
			}
		}()
		return run(ctx, t, joined)
	}
}
