package carry

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// Conn sends unary calls over a second connection, which is for calls alone. Streams use gRPC.
// So do calls while there is no second connection.
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
	by *Calls
}

// Invoke implements grpc.ClientConnInterface. gRPC makes a call that has other
// options than StaticMethod.
func (c *Conn) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	if cs := c.carrying(); cs != nil && onlyStatic(options) {
		options = cs.options[1-min(len(options), 1):] // the first is gRPC's StaticMethod
	}
	return c.ClientConnInterface.Invoke(ctx, method, request, reply, options...)
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
// behind the interceptors that were given before it. h, which may be nil, gets what gRPC
// would report to a stats handler.
func DialOption(h stats.Handler) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		var cs *Calls
		most := MaxPayload
		for _, o := range options {
			switch o := o.(type) {
			case carried:
				cs = o.by
			case grpc.MaxSendMsgSizeCallOption: // the connection's
				most = o.MaxSendMsgSize
			}
		}
		if cs != nil {
			if err, carried := cs.invoke(ctx, h, most, method, request, reply); carried {
				return err
			}
		}
		return invoke(ctx, method, request, reply, cc, options...)
	})
}
