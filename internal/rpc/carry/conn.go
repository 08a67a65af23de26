package carry

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// Conn is a connection whose unary calls go over a stream while there is one. All
// else, and every call without a stream, goes over the connection that it was made
// from.
type Conn struct {
	grpc.ClientConnInterface
	dial Dialer // may be nil

	mu      sync.Mutex
	present *Stream // that carries calls, or is being opened
	refused bool    // the plugin does not know streams of calls
}

// A Dialer opens a connection for calls alone. It fails if the plugin does not confirm
// Protocol. Closing the connection must not wait for the plugin.
type Dialer func(context.Context) (net.Conn, error)

// New returns a Conn over conn, which stays the caller's. Calls are carried only if
// conn was dialled with DialOption. They go over a connection from dial, or over a
// stream of conn if dial is nil or fails.
func New(conn grpc.ClientConnInterface, dial Dialer) *Conn {
	return &Conn{ClientConnInterface: conn, dial: dial}
}

// Start returns the present stream. If there is none, it returns a new one, and the
// caller must Run that.
func (c *Conn) Start() (s *Stream, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.present != nil {
		return c.present, false
	}
	s = newStream(c)
	if c.refused {
		close(s.settled)
		return s, false
	}
	c.present = s
	return s, true
}

// carrying returns the stream for a call; nil if there is none.
func (c *Conn) carrying() *Stream {
	c.mu.Lock()
	s := c.present
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	select {
	case <-s.settled:
		return s
	default:
		return nil
	}
}

// leave notes that s carries no calls from now on.
func (c *Conn) leave(s *Stream, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.present == s {
		c.present = nil
	}
	c.refused = c.refused || refused
}

// onStream is a call option that asks DialOption's interceptor for a stream.
type onStream struct {
	grpc.EmptyCallOption
	stream *Stream
}

// Invoke is grpc.ClientConnInterface's. A call with options of its own is gRPC's
// business.
func (c *Conn) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	if s := c.carrying(); s != nil && onlyStatic(options) {
		options = s.options[1-min(len(options), 1):] // gRPC's is the first
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

// DialOption has a connection carry the calls of a Conn. It takes the place of gRPC's
// transport behind the interceptors that were given before. h
// gets what gRPC would give to a handler of statistics; it may be nil.
func DialOption(h stats.Handler) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		var s *Stream
		most := MaxPayload
		for _, o := range options {
			switch o := o.(type) {
			case onStream:
				s = o.stream
			case grpc.MaxSendMsgSizeCallOption: // of the connection
				most = o.MaxSendMsgSize
			}
		}
		if s != nil {
			if err, carried := s.invoke(ctx, h, most, method, request, reply); carried {
				return err
			}
		}
		return invoke(ctx, method, request, reply, cc, options...)
	})
}
