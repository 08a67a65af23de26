package server

import (
	"context"
	"io"
	"testing"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"google.golang.org/grpc"
)

// Hosts that attach and leave in between change nothing.
func TestFirstHostAttachesAndLastOneOrphans(t *testing.T) {
	s := New(Config{})
	for i, step := range []struct {
		do                 func()
		attached, orphaned bool
	}{
		{func() {}, false, false},
		{s.addHost, true, false},
		{s.addHost, true, false},
		{s.removeHost, true, false},
		{s.removeHost, true, true},
		{s.addHost, true, true},
		{s.removeHost, true, true},
	} {
		step.do()
		if attached, orphaned := closed(s.Attached()), closed(s.Orphaned()); attached != step.attached || orphaned != step.orphaned {
			t.Errorf("step %d: attached %v, orphaned %v; want %v, %v", i, attached, orphaned, step.attached, step.orphaned)
		}
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// attaching is the stream of a host that attaches.
type attaching struct {
	grpc.ServerStream
	ctx  context.Context
	sent func() error
}

func (a attaching) Context() context.Context      { return a.ctx }
func (a attaching) Send(*pb.AttachResponse) error { return a.sent() }

// The host is attached before it gets the message.
func TestHostIsAttachedForAsLongAsItsStream(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		s := New(Config{})
		ctx, cancelStream := context.WithCancel(t.Context())
		err := service{Server: s}.Attach(nil, attaching{ctx: ctx, sent: func() error {
			if !closed(s.Attached()) || closed(s.Orphaned()) {
				t.Error("the host got the message before it was attached")
			}
			if breaks {
				return io.ErrUnexpectedEOF
			}
			cancelStream()
			return nil
		}})
		cancelStream()
		if breaks != (err != nil) || !closed(s.Orphaned()) {
			t.Errorf("breaks %v: %v, orphaned %v", breaks, err, closed(s.Orphaned()))
		}
	}
}
