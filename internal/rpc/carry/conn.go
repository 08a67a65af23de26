// Package carry sends unary gRPC calls over a separate connection. Such a call costs one
// message each way, and with both ends in one process 0.4 of a gRPC call's processor time.
// BenchmarkTransport measures both, and the bare TLS connection.
//
// The host's side is a [Conn], a connection for generated stubs. The plugin's side is a
// [Dispatcher], on which services are registered as on a gRPC server. Stubs, services and
// interceptors see no difference: deadlines, cancellation, errors with their details,
// metadata and telemetry work as in gRPC.
//
// Order of use in the host: dial with [DialOption], then [New] and [Conn.Start]. In the
// plugin: [NewDispatcher], and register the services. Pass connections that negotiate
// [Protocol] to [Dispatcher.ServeConn].
//
// # Why not HTTP/2
//
// HTTP/2 needs a writing goroutine, a reading goroutine and one for the stream on each side,
// and each must be woken for each call. Here the caller writes, and the reading goroutine
// makes the call or wakes the caller. Plugins without TLS, and hosts in other languages, make
// gRPC calls. An earlier version sent messages over one long-lived gRPC stream. It took half
// of a gRPC call's processor time, and no host needed it.
//
// All sessions of a host share one connection. With 20 callers, a call took 24 us on one
// connection for all, and 37 us with a connection for each (BenchmarkConnections): answers
// that arrive while one is sent share a write. A connection also costs two goroutines and some 70 KiB of
// buffers on each side, more than the rest of a session.
//
// # Flow
//
// No call queues for the connection. The plugin announces in its Limits how many unanswered
// calls a host may have, and of what size. A call that has a large request, or would exceed the
// limits, is made as a gRPC call. The receiving side reads at all times. It passes calls to other
// goroutines, and answers to the waiting callers. Large answers are cut into parts, and other
// answers pass between the parts.
//
// A host's call never waits for the plugin to read; see [Calls.put]. A plugin whose host does
// not read its answers stops reading calls when [MaxUnsent] bytes wait, and ends the
// connection at [MaxKept].
//
// A session's heartbeats use a gRPC stream of their own, which nothing here delays.
package carry

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"
)

// Conn sends unary calls over a second connection, which is for calls alone. Streams use gRPC, and
// so do calls while there is no second connection.
type Conn struct {
	grpc.ClientConnInterface
	dial Dialer // may be nil

	mu      sync.Mutex
	present *Calls // carries calls, or is being opened
}

// A Dialer opens a connection for calls alone. It fails if the plugin does not confirm
// Protocol. Closing the connection must not wait for the plugin.
type Dialer func(context.Context) (net.Conn, error)

// New returns a Conn over conn, which the caller owns. Calls are carried only if conn was
// dialled with DialOption. If dial is nil or fails, gRPC makes all calls.
func New(conn grpc.ClientConnInterface, dial Dialer) *Conn {
	return &Conn{ClientConnInterface: conn, dial: dial}
}

// Start returns the current connection for calls, if it exists. Otherwise it returns a new
// one, and the caller must Run it.
func (c *Conn) Start() (cs *Calls, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.present != nil {
		return c.present, false
	}
	cs = newCalls(c)
	if c.dial == nil {
		close(cs.settled)
		return cs, false
	}
	c.present = cs
	return cs, true
}

// carrying returns the connection that carries calls, or nil.
func (c *Conn) carrying() *Calls {
	c.mu.Lock()
	cs := c.present
	c.mu.Unlock()
	if cs == nil {
		return nil
	}
	select {
	case <-cs.settled:
		return cs
	default:
		return nil
	}
}

// leave records that cs carries no more calls.
func (c *Conn) leave(cs *Calls) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.present == cs {
		c.present = nil
	}
}

// carried is a call option that makes DialOption's interceptor carry the call.
type carried struct {
	grpc.EmptyCallOption
	calls *Calls
}

// Invoke implements grpc.ClientConnInterface. gRPC makes a call that has other
// options than StaticMethod.
func (c *Conn) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	if cs := c.carrying(); cs != nil && onlyStatic(options) {
		options = cs.options[1-min(len(options), 1):] // the first is gRPC's StaticMethod
	}
	err := c.ClientConnInterface.Invoke(ctx, method, request, reply, options...)
	if read := reader(ctx); read != nil && err == nil {
		read(reply.(proto.Message))
	}
	return err
}

func onlyStatic(options []grpc.CallOption) bool {
	for _, o := range options {
		if _, ok := o.(grpc.StaticMethodCallOption); !ok {
			return false
		}
	}
	return true
}

// DialOption makes a connection carry the calls of a Conn. It replaces gRPC's transport
// behind the interceptors that were given before it. A call that is not carried is a unary gRPC
// call, or PluginService.Call if it has early parts. h, which may be nil, gets what gRPC would
// report to a stats handler.
func DialOption(h stats.Handler) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		var cs *Calls
		most := MaxPayload
		for _, o := range options {
			switch o := o.(type) {
			case carried:
				cs = o.calls
			case grpc.MaxSendMsgSizeCallOption: // the connection's
				most = o.MaxSendMsgSize
			}
		}
		if cs != nil {
			if err, carried := cs.invoke(ctx, h, most, method, request, reply); carried {
				return err
			}
		}
		if reader(ctx) != nil {
			return invokeInParts(ctx, cc, method, request, reply, options...)
		}
		return invoke(ctx, method, request, reply, cc, options...)
	})
}
