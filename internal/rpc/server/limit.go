package server

import (
	"cmp"
	"fmt"
	"sync"

	"google.golang.org/grpc"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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

// Limits bound the sessions, grants and streams that hosts have at a time, and the size of a
// message. Requests beyond a limit are refused with recipes.ErrLimit, and messages with
// recipes.ErrTooLarge. 0 selects the constant above.
//
// What waits to be sent to a host has separate limits, which are constants: MaxUnsent and,
// for calls, those of package carry. For each watch only the latest value waits.
type Limits struct {
	// Sessions bounds the sessions of one plugin (MaxSessions).
	Sessions int
	// Grants bounds what one session holds or waits for, and also its sites in transactions
	// (MaxGrants).
	Grants int
	// Watches bounds the streams of one session besides its own (MaxWatches).
	Watches int
	// Message bounds one message from a host, in bytes (MaxMessage, far above ZooKeeper's
	// default packet limit).
	Message int
}

// checkRequest refuses a request id that is too long to be remembered.
func checkRequest(r any) error {
	if r, ok := r.(interface{ GetRequestId() string }); ok && len(r.GetRequestId()) > MaxRequestID {
		return fmt.Errorf("%w: request_id has %d bytes; it can have %d", recipes.ErrInvalid, len(r.GetRequestId()), MaxRequestID)
	}
	return nil
}

func (l Limits) defaults() Limits {
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
	limits   Limits
	mu       sync.Mutex
	opens    int
	watching map[string]int // by session
}

func newLimiter(l Limits) *limiter { return &limiter{limits: l, watching: make(map[string]int)} }

// stream is an interceptor.
func (l *limiter) stream(srv any, st grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if info.FullMethod == pb.SessionService_Open_FullMethodName {
		if err := l.open(); err != nil {
			return err
		}
		defer l.closed()
		return handle(srv, st)
	}
	c := &watchStream{ServerStream: st, limiter: l}
	defer c.done()
	return handle(srv, c)
}

func (l *limiter) open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opens >= l.limits.Sessions {
		return fmt.Errorf("%w: the plugin has %d sessions", recipes.ErrLimit, l.opens)
	}
	l.opens++
	return nil
}

func (l *limiter) closed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opens--
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
	if err := c.limiter.watch(named.GetSession()); err != nil {
		return err
	}
	c.session = named.GetSession()
	return nil
}

func (c *watchStream) done() {
	if c.session != "" {
		c.limiter.unwatch(c.session)
	}
}

func (l *limiter) watch(session string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.watching[session]; n >= l.limits.Watches {
		return fmt.Errorf("%w: the session has %d streams besides its own", recipes.ErrLimit, n)
	}
	l.watching[session]++
	return nil
}

func (l *limiter) unwatch(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watching[session]--; l.watching[session] == 0 {
		delete(l.watching, session)
	}
}
