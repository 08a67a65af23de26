package carry_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

// A backlog takes several messages. The notice of a cancellation must not overtake its call:
// the plugin would end the connection, and with it all sessions of the host.
func TestACallCancelledInABacklogIsNeverSent(t *testing.T) {
	var made atomic.Int32
	writes, release := make(chan struct{}, 99), make(chan struct{})
	p := newPair(t, setting{
		acquire: func(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			made.Add(1)
			return echo(ctx, r)
		},
		wrap: func(c net.Conn) net.Conn { return stalled{c, writes, release} },
	})
	var first sync.WaitGroup
	first.Go(func() { _, err := p.Acquire(bounded(t), &pb.AcquireRequest{}); must.Report(t, err) })
	<-writes
	for range 10 { // two fill a message
		ctx, cancel := context.WithCancel(bounded(t))
		_, err := p.Acquire(impatient{ctx, cancel}, &pb.AcquireRequest{Data: make([]byte, 30<<10)})
		if status.Code(err) != codes.Canceled || !carry.Unsent(err) {
			t.Errorf("%v; it was not sent: %v", err, carry.Unsent(err))
		}
	}
	close(release)
	first.Wait()
	if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{}); err != nil || made.Load() != 2 || p.unary.get() > 0 {
		t.Errorf("%v; %d calls were made, %d by gRPC", err, made.Load(), p.unary.get())
	}
}
