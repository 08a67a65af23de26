//go:build unix

package host

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
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
	contact atomic.Pointer[time.Time] // the latest that the leader is known to have had
	heard   chan struct{}             // closed when there is one
	over    chan struct{}             // closed when the stream has ended
	lost    bool                      // the stream told so; set before over is closed
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
	n := newTenure(t, l, conn)
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

func newTenure(t *testing.T, l *launched, conn *grpc.ClientConn) *tenure {
	return &tenure{t: t, process: l, conn: conn, heard: make(chan struct{}), over: make(chan struct{})}
}

// beside is the same process, for another session.
func (n *tenure) beside() *tenure { return newTenure(n.t, n.process, n.conn) }

// open opens a session, or resumes it.
func (n *tenure) open(servers []string, resume *pb.Resume) error {
	n.t.Helper()
	st, err := pb.NewSessionServiceClient(n.conn).Open(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	start := &pb.Start{Config: &pb.Config{Servers: servers, SessionTimeout: durationpb.New(time.Minute)}, Resume: resume}
	_ = st.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Start{Start: start}})
	m, err := st.Recv()
	if err != nil {
		err, _ = wire.Error(err)
		return err
	}
	n.stream, n.opened = st, m.GetOpened()
	return nil
}

// serve opens a session, or resumes it, and keeps it.
func (n *tenure) serve(ctx context.Context, servers []string, resume *pb.Resume) {
	n.t.Helper()
	if err := n.open(servers, resume); err != nil {
		n.t.Fatal(err)
	}
	sent := time.Now()
	_ = n.stream.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Beat{Beat: &pb.Beat{Number: 1}}})
	go n.listen(sent)
	select {
	case <-n.heard:
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
			contact := sent.Add(-e.GetKnownContactAge().AsDuration())
			if n.contact.Swap(&contact) == nil {
				close(n.heard)
			}
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
	age := time.Since(*n.contact.Load())
	if age >= n.opened.GetTimeout().AsDuration() {
		n.t.Fatalf("the machine is too slow: the last contact is %v old", age)
	}
	return &pb.Resume{Ticket: n.opened.GetTicket(), Session: n.opened.GetSession(), KnownContactAge: durationpb.New(age)}
}

// ask asks for a grant by that request id, or takes up the one that the session had.
type ask func(id string, had *pb.Grant) (*pb.Grant, error)

func (n *tenure) lock(ctx context.Context, path string) ask {
	return func(id string, had *pb.Grant) (*pb.Grant, error) {
		a, err := pb.NewLockServiceClient(n.conn).Acquire(ctx, &pb.AcquireRequest{Session: n.opened.GetSession(), RequestId: id, Path: path, Resumed: had})
		err, _ = wire.Error(err)
		return a.GetGrant(), err
	}
}

func (n *tenure) name(ctx context.Context, name string) ask {
	return func(id string, had *pb.Grant) (*pb.Grant, error) {
		a, err := pb.NewNamesServiceClient(n.conn).RegisterName(ctx, &pb.RegisterNameRequest{Session: n.opened.GetSession(), RequestId: id, Path: "/names", Name: name, Resumed: had})
		err, _ = wire.Error(err)
		return a.GetGrant(), err
	}
}

// granted asks for a grant, which must be the one that the session had.
func (n *tenure) granted(by ask, id string, had *pb.Grant) *pb.Grant {
	n.t.Helper()
	g, err := by(id, had)
	if err != nil || had != nil && (g.GetZnode() != had.GetZnode() || g.GetToken() != had.GetToken()) {
		n.t.Fatalf("%s: %v; it had %v: %v", id, g, had, err)
	}
	return g
}

func (n *tenure) dropRest(ctx context.Context) {
	n.t.Helper()
	if _, err := pb.NewSessionServiceClient(n.conn).DropRest(ctx, &pb.DropRestRequest{Session: n.opened.GetSession()}); err != nil {
		n.t.Fatal(err)
	}
}

// useAndRelease writes under a grant and gives it back.
func (n *tenure) useAndRelease(ctx context.Context, id string) {
	n.t.Helper()
	grants, session := pb.NewGrantServiceClient(n.conn), n.opened.GetSession()
	_, err := grants.Write(ctx, &pb.WriteRequest{Session: session, RequestId: id, Ops: wire.ToOps([]recipes.Op{recipes.Create("/written-"+id, nil)})})
	if err == nil {
		_, err = grants.Release(ctx, &pb.ReleaseRequest{Session: session, RequestId: id})
	}
	if err != nil {
		n.t.Errorf("%s: %v", id, err)
	}
}

// A lock outlives its plugin's process, killed again and again, frozen or not. The next
// in line, which waits through another plugin, is granted when it was released.
func TestALockOutlivesTheProcessThatHeldIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
	defer cancel()
	servers := ensembletest.Shared(t).Addrs()

	now := launchReal(ctx, t)
	now.serve(ctx, servers, nil)
	session := now.opened.GetSession()
	held := now.granted(now.lock(ctx, "/held"), "1", nil)

	rival := launchReal(ctx, t)
	rival.serve(ctx, servers, nil)
	granted := make(chan *pb.Grant, 1)
	go func() {
		g, err := rival.lock(ctx, "/held")("1", nil)
		if err != nil {
			t.Errorf("the next in line: %v", err)
		}
		granted <- g
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
		now.granted(now.lock(ctx, "/held"), "1", held)
		now.dropRest(ctx)
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
