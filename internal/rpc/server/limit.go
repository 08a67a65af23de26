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

// Limits are those of package plugin. 0 selects the constant above. Grants also bounds the sites
// of a session in transactions.
//
// What waits to be sent to a host has separate limits, which are constants: MaxUnsent and,
// for calls, those of package carry. For each watch only the latest value waits.
type Limits struct{ Sessions, Grants, Watches, Message int }

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
	limits  Limits
	mu      sync.Mutex
	streams map[string]int // of each session besides its own; those of all sessions are at ""
}

func newLimiter(l Limits) *limiter { return &limiter{limits: l, streams: make(map[string]int)} }

// stream is an interceptor.
func (l *limiter) stream(srv any, st grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if info.FullMethod == pb.SessionService_Open_FullMethodName {
		if err := l.begin(""); err != nil {
			return err
		}
		defer l.end("")
		return handle(srv, st)
	}
	c := &watchStream{ServerStream: st, limiter: l}
	defer func() {
		if c.session != "" {
			l.end(c.session)
		}
	}()
	return handle(srv, c)
}

// begin counts a stream of a session besides its own, or a session's own if session is empty.
func (l *limiter) begin(session string) error {
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

func (l *limiter) end(session string) {
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
	if err := c.limiter.begin(named.GetSession()); err != nil {
		return err
	}
	c.session = named.GetSession()
	return nil
}
