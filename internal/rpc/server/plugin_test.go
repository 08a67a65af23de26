package server

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
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
		{s.arrive, true, false},
		{s.arrive, true, false},
		{s.depart, true, false},
		{s.depart, true, true},
		{s.arrive, true, true},
		{s.depart, true, true},
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

// about lists the capabilities for every service. Capabilities that every plugin has are
// omitted.
var about = map[string][]string{
	"zkrecipes.v1.PluginService":        nil,
	"zkrecipes.v1.SessionService":       {"resume", "sasl"},
	"zkrecipes.v1.GrantService":         {"held"},
	"zkrecipes.v1.CallService":          {"call-connection"},
	"zkrecipes.v1.ContenderService":     {"contenders", "children"},
	"zkrecipes.v1.LockService":          {"lock", "dialects"},
	"zkrecipes.v1.ElectionService":      {"election"},
	"zkrecipes.v1.QueueService":         {"queue", "priority-queue"},
	"zkrecipes.v1.TransactionService":   {"transaction"},
	"zkrecipes.v1.GroupService":         {"group"},
	"zkrecipes.v1.BarrierService":       {"barrier"},
	"zkrecipes.v1.DoubleBarrierService": {"double-barrier"},
	"zkrecipes.v1.NamesService":         {"names"},
	"zkrecipes.v1.ConfigurationService": {"configuration"},
	"zkrecipes.v1.CounterService":       {"counter"},
	"zkrecipes.v1.LatchService":         {"latch"},
	"zkrecipes.v1.ReadWriteLockService": {"shared-lock", "priority-lock"},
	"zkrecipes.v1.SemaphoreService":     {"semaphore", "slots"},
}

// Info must list the capability of every service, because hosts check it before they call.
func TestEveryServiceHasItsCapability(t *testing.T) {
	g := grpc.NewServer()
	s := New(Config{})
	s.Register(g)
	var reported []string
	for name := range g.GetServiceInfo() {
		names, ok := about[name]
		if !ok {
			t.Errorf("%s is new: add its capability", name)
		}
		reported = append(reported, names...)
	}
	have := Config{Resume: func(context.Context, recipes.SessionConfig, []byte, time.Time) (recipes.Client, error) {
		return nil, nil
	}}.Capabilities()
	slices.Sort(reported)
	slices.Sort(have)
	if !slices.Equal(reported, have) {
		t.Errorf("the services have %q, the capabilities are %q", reported, have)
	}
}
