package server_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// longPath is a path whose places fill a stream quickly.
var longPath = "/" + strings.Repeat("x", 60<<10)

// unsent replaces MaxUnsent in these tests. gRPC's buffers take 20 places.
const unsent = 4 << 20

// newDeafHost returns a host that has opened a session, and reads its stream only when the
// test does.
func newDeafHost(t *testing.T) *rawHost {
	h := newRawHost(t, server.Config{}.Unsent(unsent))
	h.open(nil)
	return h
}

func (h *rawHost) contend(ctx context.Context, id, path string, try bool) error {
	_, err := h.grants.Acquire(ctx, &pb.AcquireRequest{Recipe: &pb.AcquireRequest_Lock{}, Session: h.session, RequestId: id, Path: path, Announce: true, Try: try})
	return err
}

// ungranting is a session whose locks are never granted. Their places fill a stream quickly.
type ungranting struct{ recipes.Client }

func (ungranting) Lock(_ string, cfg recipes.LockConfig) (recipes.Lock, error) {
	return ungranted{joined: cfg.Joined}, nil
}

type ungranted struct {
	recipes.Lock
	joined func(recipes.Place)
}

func (l ungranted) Acquire(ctx context.Context) (recipes.Hold, error) {
	l.joined(recipes.Place{Znode: longPath, Position: 1})
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Other clients are granted what the session held. A host that reads again gets the loss.
func TestSessionEndsIfItsHostLeavesTooMuchUnread(t *testing.T) {
	h := newRawHost(t, server.Config{}.Unsent(unsent))
	h.wrap = func(s recipes.Client) recipes.Client { return ungranting{s} }
	h.open(nil)
	var waiting sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer waiting.Wait()
	defer cancel()
	for i := range unsent/(60<<10) + 100 { // 100: the buffers of the connection
		waiting.Go(func() { _ = h.contend(ctx, fmt.Sprint(i), "/l", false) })
	}
	<-h.opened.Done()
	var reason error
	for {
		m, err := h.stream.Recv()
		if err != nil { // the plugin has closed the session
			break
		}
		if change := m.GetStateChanged(); change.GetState() == pb.State_STATE_LOST {
			reason = wire.Failure(change.GetReason(), recipes.ErrInternal)
		}
	}
	if !errors.Is(reason, recipes.ErrLimit) || !errors.Is(reason, recipes.ErrPluginLost) {
		t.Error(reason)
	}
	if open := h.zk.Sessions(); len(open) > 0 {
		t.Errorf("session %#x is open", open)
	}
}

// gRPC keeps the answers that a host does not read, and has no other limit for a host that
// continues to make calls. The limit is in the plugin's first frame, SETTINGS, whose entries
// have six bytes.
func TestGRPCCallsOfAConnectionAreLimited(t *testing.T) {
	host, plugin := net.Pipe()
	g := grpc.NewServer(server.New(server.Config{}).Options()...)
	l := &once{conn: plugin, closed: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(l) })
	defer serving.Wait()
	defer g.Stop()
	defer host.Close()
	go func() {
		_, _ = io.WriteString(host, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	}()
	head := make([]byte, 9)
	if _, err := io.ReadFull(host, head); err != nil || head[3] != 4 {
		t.Fatalf("%x, %v", head, err)
	}
	settings := make([]byte, int(head[1])<<8|int(head[2]))
	must.Get(io.ReadFull(host, settings))(t)
	const maxConcurrentStreams = 3
	for ; len(settings) > 0; settings = settings[6:] {
		if binary.BigEndian.Uint16(settings) == maxConcurrentStreams {
			if n := binary.BigEndian.Uint32(settings[2:]); n != server.MaxCalls {
				t.Errorf("%d calls", n)
			}
			return
		}
	}
	t.Error("no limit")
}

// once is a listener with one connection.
type once struct {
	conn   net.Conn // nil once it was accepted
	closed chan struct{}
}

func (o *once) Accept() (net.Conn, error) {
	if conn := o.conn; conn != nil {
		o.conn = nil
		return conn, nil
	}
	<-o.closed
	return nil, net.ErrClosed
}

func (o *once) Close() error   { close(o.closed); return nil }
func (o *once) Addr() net.Addr { return &net.UnixAddr{} }

// The id is refused over both transports.
func TestRequestIDThatIsTooLongIsRefused(t *testing.T) {
	h := newDeafHost(t)
	id := strings.Repeat("i", server.MaxRequestID)
	must.Report(t, h.contend(t.Context(), id, "/l", false))
	_, abandon := h.grants.Abandon(t.Context(), &pb.AbandonRequest{Session: h.session, RequestId: id + "i"})
	_, put := pb.NewQueueServiceClient(h.conn).PutElements(t.Context(), &pb.PutElementsRequest{Session: h.session, RequestId: id + "i"})
	for _, err := range []error{h.contend(t.Context(), id+"i", "/l", false), abandon, put} {
		if e, _ := wire.Error(err); !errors.Is(e, recipes.ErrInvalid) || !strings.Contains(err.Error(), "request_id has 129 bytes") {
			t.Error(err)
		}
	}
}

// If a host does not read, the plugin drops the unsent places of calls that have finished, because
// their answers contain the places. It keeps the loss of a grant.
func TestPlaceOfAContenderThatHasLeftIsNotKept(t *testing.T) {
	h := newDeafHost(t)
	must.Do(t, h.contend(t.Context(), "held", longPath, false))
	must.Get(h.grants.Watch(t.Context(), &pb.WatchRequest{Session: h.session, RequestId: "held"}))(t)
	const left = 80
	for i := range left {
		err := h.contend(t.Context(), fmt.Sprint(i), longPath, true)
		if e, _ := wire.Error(err); !errors.Is(e, recipes.ErrContended) {
			t.Fatal(err)
		}
		if place, ok := wire.PlaceOf(err); !ok || place.Position != 1 {
			t.Fatalf("the answer's place: %v, %v", place, ok)
		}
	}
	other := must.Get(h.dial.Open(t.Context(), recipes.SessionConfig{Servers: h.servers}))(t)
	must.Do(t, zktest.BarrierAt(t, other, longPath+"/"+zktest.Layout(h.zk, longPath)[0]).Remove(t.Context()))
	must.Do(t, other.Close(t.Context()))
	h.send(heartbeat(7))
	places, lost, echoed := 0, false, false
	for !lost || !echoed {
		m := must.Get(h.stream.Recv())(t)
		if m.GetJoined() != nil {
			places++
		}
		lost = lost || m.GetGrantLost().GetRequestId() == "held"
		echoed = echoed || m.GetBeatEcho() != nil
	}
	if places > left/2 {
		t.Errorf("%d places of %d contenders were kept", places, left)
	}
}

// The answer to a handoff is lost, and the successor already holds the lock. Without a report of
// the loss, two clients would consider themselves the holder.
func TestHandOffWhoseAnswerIsLostClosesLost(t *testing.T) {
	srv, ctx := zktest.Embedded(t), bounded(t)
	deaf := func(ctx context.Context, full string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, full, req, reply, cc, opts...)
		if strings.HasSuffix(full, "/HandOff") {
			return status.Error(codes.Canceled, "the answer was lost")
		}
		return err
	}
	conn, _ := serve(t, server.Config{Open: zookeeper.Open}, grpc.WithUnaryInterceptor(deaf))
	host := client.New(conn, nil)
	t.Cleanup(func() { host.Close() })
	lock := func(cfg recipes.PriorityLockConfig) recipes.PriorityLock {
		s := must.Get(host.Open(ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}}))(t)
		return must.Get(s.PriorityLock("/l", cfg))(t)
	}
	holder := must.Get(lock(recipes.PriorityLockConfig{}).AcquireWrite(ctx))(t)
	joined, granted := make(chan recipes.Place, 1), make(chan error, 1)
	next := lock(recipes.PriorityLockConfig{Joined: func(p recipes.Place) { joined <- p }})
	go func() { _, err := next.AcquireWrite(ctx); granted <- err }()
	if err := holder.HandOff(ctx, (<-joined).Znode); !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	must.Do(t, <-granted)
	select {
	case <-holder.Done():
	case <-ctx.Done():
		t.Fatal("the former holder gets no loss")
	}
	if err := holder.Err(); !errors.Is(err, recipes.ErrReleased) {
		t.Error(err)
	}
}
