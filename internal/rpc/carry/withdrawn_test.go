package carry_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// stalled is a connection that sends nothing before release is closed.
type stalled struct {
	net.Conn
	writes  chan<- struct{} // gets an element before each write
	release <-chan struct{}
}

func (s stalled) Write(b []byte) (int, error) {
	s.writes <- struct{}{}
	<-s.release
	return s.Conn.Write(b)
}

// impatient is a context that ends as soon as a call waits for it.
type impatient struct {
	context.Context
	cancel func()
}

func (i impatient) Done() <-chan struct{} { i.cancel(); return i.Context.Done() }

func unsent(err error) bool { return errors.As(err, new(carry.UnsentError)) }

// backlogged is a pair whose first call is being sent until release is called, which returns
// the error of that call. Further calls wait.
func backlogged(t *testing.T, s setting) (p *pair, release func() error) {
	t.Helper()
	writes, proceed, first := make(chan struct{}, 99), make(chan struct{}), make(chan error, 1)
	s.wrap = func(c net.Conn) net.Conn { return stalled{c, writes, proceed} }
	p = newPair(t, s)
	go func() { _, err := p.Acquire(bounded(t), &pb.AcquireRequest{}); first <- err }()
	<-writes
	return p, func() error { close(proceed); return <-first }
}

// A backlog takes several messages. The notice of a cancellation must not overtake its call:
// the plugin would end the connection, and with it all sessions of the host.
func TestACallCancelledInABacklogIsNeverSent(t *testing.T) {
	var made atomic.Int32
	p, release := backlogged(t, setting{acquire: func(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		made.Add(1)
		return echo(ctx, r)
	}})
	for range 10 { // two fill a message
		ctx, cancel := context.WithCancel(bounded(t))
		_, err := p.Acquire(impatient{ctx, cancel}, &pb.AcquireRequest{Data: make([]byte, 30<<10)})
		if status.Code(err) != codes.Canceled || !unsent(err) {
			t.Errorf("%v; it was not sent: %v", err, unsent(err))
		}
	}
	must.Report(t, release())
	if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{}); err != nil || made.Load() != 2 || p.unary.get() > 0 {
		t.Errorf("%v; %d calls were made, %d by gRPC", err, made.Load(), p.unary.get())
	}
}

// gate is a connection whose writes wait while mu is locked.
type gate struct {
	net.Conn
	mu     *sync.Mutex
	writes chan<- struct{} // gets an element before each write, if it has room
}

func (g gate) Write(b []byte) (int, error) {
	select {
	case g.writes <- struct{}{}:
	default:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Conn.Write(b)
}

// noticing is a context that notices that a call waits for it.
type noticing struct {
	context.Context
	waits func()
}

func (n noticing) Done() <-chan struct{} { n.waits(); return n.Context.Done() }

// Cancellations leave less room for the calls in their message. The plugin would end a connection
// with a message that is too large.
func TestCancellationsAndCallsShareAMessage(t *testing.T) {
	var mu sync.Mutex
	writes := make(chan struct{}, 1)
	arrived := make(chan struct{})
	p := newPair(t, setting{
		wrap: func(c net.Conn) net.Conn { return gate{c, &mu, writes} },
		acquire: func(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			if r.GetPath() == "wait" {
				arrived <- struct{}{}
				<-ctx.Done()
			}
			return echo(ctx, r)
		},
	})
	var cancelled, others sync.WaitGroup
	ctx, cancel := context.WithCancel(bounded(t))
	for range 300 {
		cancelled.Go(func() { _, _ = p.Acquire(ctx, &pb.AcquireRequest{Path: "wait"}) })
		<-arrived
	}
	send := func(size int) {
		queued := make(chan struct{})
		others.Go(func() {
			ctx := noticing{bounded(t), sync.OnceFunc(func() { close(queued) })}
			if _, err := p.Acquire(ctx, &pb.AcquireRequest{Data: make([]byte, size)}); err != nil {
				t.Error(err)
			}
		})
		<-queued
	}
	mu.Lock()
	for len(writes) > 0 {
		<-writes
	}
	send(0)
	<-writes // the rest waits for this call
	cancel()
	cancelled.Wait()
	half := carry.MaxPayload - 64 - len(pb.LockService_Acquire_FullMethodName) // two of these fill a message
	for range 2 {
		send(half - (proto.Size(&pb.AcquireRequest{Data: make([]byte, half)}) - half))
	}
	mu.Unlock()
	others.Wait()
	if n := p.unary.get(); n > 0 {
		t.Errorf("%d gRPC calls", n)
	}
}

// The outcome of a call is unknown only if it may have been sent.
func TestACallThatWaitsAtTheEndOfItsConnectionWasNotSent(t *testing.T) {
	p, release := backlogged(t, setting{acquire: echo})
	_, waited := p.Acquire(impatient{context.WithoutCancel(t.Context()), p.cancelConn}, &pb.AcquireRequest{})
	sent := release()
	for err, want := range map[error]bool{waited: true, sent: false} {
		if status.Code(err) != codes.Unavailable || unsent(err) != want {
			t.Errorf("%v; it was not sent: %v", err, unsent(err))
		}
	}
}
