//go:build unix

package host

import (
	"context"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A tenure is one plugin process that serves a session, by the protocol alone: what a
// host in another language has to do.
type tenure struct {
	t       *testing.T
	process *launched
	conn    *grpc.ClientConn
	stream  grpc.BidiStreamingClient[pb.OpenRequest, pb.OpenResponse]
	opened  *pb.Opened
	contact chan time.Time // holds the latest contact that the leader is known to have
	over    chan struct{}  // closed when the stream has ended
	lost    bool           // the stream told so; set before over is closed
}

// launchReal starts a plugin process.
func launchReal(ctx context.Context, t *testing.T) *tenure {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := Config{Path: self, Env: []string{"TEST_ROLE=real plugin"}, Logger: hclog.NewNullLogger()}.normalize()
	if err != nil {
		t.Fatal(err)
	}
	l := newLaunched(cfg)
	conn, err := l.start(ctx)
	if err != nil {
		l.discard()
		t.Fatal(l.startError(ctx, err))
	}
	n := &tenure{t: t, process: l, conn: conn, contact: make(chan time.Time, 1), over: make(chan struct{})}
	st, err := pb.NewPluginServiceClient(conn).Attach(t.Context(), &pb.AttachRequest{})
	if err == nil {
		_, err = st.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.reap)
	return n
}

// serve opens a session, or resumes it.
func (n *tenure) serve(ctx context.Context, servers []string, resume *pb.Resume) {
	n.t.Helper()
	st, err := pb.NewSessionServiceClient(n.conn).Open(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	start := &pb.Start{Config: &pb.Config{Servers: servers, SessionTimeout: durationpb.New(20 * time.Second)}, Resume: resume}
	_ = st.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Start{Start: start}})
	m, err := st.Recv()
	if err != nil {
		n.t.Fatal(err)
	}
	n.stream, n.opened = st, m.GetOpened()
	sent := time.Now()
	_ = st.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Beat{Beat: &pb.Beat{Number: 1}}})
	go n.listen(sent)
	select {
	case contact := <-n.contact:
		n.contact <- contact
	case <-ctx.Done():
		n.t.Fatal("no echo")
	}
}

// listen sends one beat after the other, and notes what the echoes tell.
func (n *tenure) listen(sent time.Time) {
	defer close(n.over)
	for number := uint64(2); ; {
		m, err := n.stream.Recv()
		if err != nil {
			return
		}
		if m.GetStateChanged().GetState() == pb.State_STATE_LOST {
			n.lost = true
		}
		if e := m.GetBeatEcho(); e != nil {
			select {
			case <-n.contact:
			default:
			}
			n.contact <- sent.Add(-e.GetKnownContactAge().AsDuration())
			time.Sleep(50 * time.Millisecond) // the pace of the beats
			sent = time.Now()
			_ = n.stream.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Beat{Beat: &pb.Beat{Number: number}}})
			number++
		}
	}
}

// reap kills the process and waits for it.
func (n *tenure) reap() {
	n.process.kill()
	<-n.process.gone()
	n.process.cleanUp()
}

// resumption is what the next plugin needs, when this one has been reaped.
func (n *tenure) resumption() *pb.Resume {
	n.t.Helper()
	<-n.over
	if n.lost {
		n.t.Fatal("the session was lost")
	}
	age := time.Since(<-n.contact)
	if age >= n.opened.GetTimeout().AsDuration() {
		n.t.Fatalf("the machine is too slow: the last contact is %v old", age)
	}
	return &pb.Resume{Ticket: n.opened.GetTicket(), Session: n.opened.GetSession(), KnownContactAge: durationpb.New(age)}
}

// A lock outlives its plugin's process, killed again and again, frozen or not. The next
// in line, which waits through another plugin, is granted when it was released.
func TestALockOutlivesTheProcessThatHeldIt(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	servers := ensembletest.Start(t, ensembletest.Quick(3)).Addrs()

	now := launchReal(ctx, t)
	now.serve(ctx, servers, nil)
	session := now.opened.GetSession()
	acquired, err := pb.NewLockServiceClient(now.conn).Acquire(ctx, &pb.AcquireRequest{Session: session, RequestId: "1", Path: "/held"})
	if err != nil {
		t.Fatal(err)
	}
	held := acquired.GetGrant()

	rival := launchReal(ctx, t)
	rival.serve(ctx, servers, nil)
	granted := make(chan *pb.Grant, 1)
	go func() {
		a, err := pb.NewLockServiceClient(rival.conn).Acquire(ctx, &pb.AcquireRequest{Session: rival.opened.GetSession(), RequestId: "1", Path: "/held"})
		if err != nil {
			t.Errorf("the next in line: %v", err)
		}
		granted <- a.GetGrant()
	}()

	var took []time.Duration
	for round := range 8 {
		next := launchReal(ctx, t)
		if round%2 == 1 { // a process that stands still cannot say that it has gone
			if err := syscall.Kill(now.process.pid(), syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		killed := time.Now()
		now.process.kill()
		<-now.process.gone()
		next.serve(ctx, servers, now.resumption())
		now = next
		again, err := pb.NewLockServiceClient(now.conn).Acquire(ctx, &pb.AcquireRequest{Session: session, RequestId: "1", Path: "/held", Resumed: held})
		if err != nil || again.GetGrant().GetToken() != held.GetToken() {
			t.Fatalf("round %d: took up %v: %v", round, again, err)
		}
		if _, err := pb.NewSessionServiceClient(now.conn).DropRest(ctx, &pb.DropRestRequest{Session: session}); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(killed))
		write := &pb.WriteRequest{Session: session, RequestId: "1"}
		if _, err := pb.NewGrantServiceClient(now.conn).Write(ctx, write); err != nil {
			t.Fatalf("round %d: a guarded write: %v", round, err)
		}
		select {
		case g := <-granted:
			t.Fatalf("round %d: the next in line was granted %v", round, g)
		default:
		}
	}
	slices.Sort(took)
	t.Logf("from SIGKILL to taken up: %v", took)
	if _, err := pb.NewGrantServiceClient(now.conn).Release(ctx, &pb.ReleaseRequest{Session: session, RequestId: "1"}); err != nil {
		t.Fatal(err)
	}
	if g := <-granted; recipes.Token(g.GetToken()) <= recipes.Token(held.GetToken()) {
		t.Errorf("granted with token %d after %d", g.GetToken(), held.GetToken())
	}
}
