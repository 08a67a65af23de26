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

// unsent replaces MaxUnsent in these tests.
const unsent = 1 << 20

// newDeafHost returns a host that has opened a session, and reads its stream only when the
// test does.
func newDeafHost(t *testing.T) *rawHost {
	h := newRawHost(t, server.Config{}.Unsent(unsent))
	h.open(nil)
	return h
}

func (h *rawHost) contend(ctx context.Context, id, path string) error {
	_, err := h.grants.Acquire(ctx, &pb.AcquireRequest{Recipe: &pb.AcquireRequest_Lock{}, Session: h.session, RequestId: id, Path: path})
	return err
}

// losing is a session whose grants are lost at once. The reports of that fill a stream quickly.
type losing struct{ recipes.Client }

func (losing) Lock(string, recipes.LockConfig) (recipes.Lock, error) { return lostLock{}, nil }

type lostLock struct{ recipes.Lock }

func (lostLock) Acquire(context.Context) (recipes.Hold, error) { return lostHold{}, nil }

type lostHold struct{ recipes.Hold }

func (lostHold) Token() recipes.Token { return 1 }
func (lostHold) Znode() string        { return "/l/lock-1" }
func (lostHold) Done() <-chan struct{} {
	lost := make(chan struct{})
	close(lost)
	return lost
}

func (lostHold) Err() error { return fmt.Errorf("%w: %s", recipes.ErrRevoked, longReason) }

// longReason is as long as a reason may be on the wire.
var longReason = strings.Repeat("x", 2<<10)

// Other clients are granted what the session held. A host that reads again gets the loss.
func TestSessionEndsIfItsHostLeavesTooMuchUnread(t *testing.T) {
	h := newRawHost(t, server.Config{}.Unsent(unsent))
	h.wrap = func(s recipes.Client) recipes.Client { return losing{s} }
	h.open(nil)
	for i := 0; h.opened.Err() == nil; i++ { // the connection's buffers take some of the reports
		id := fmt.Sprint(i)
		if err := h.contend(h.ctx, id, "/l"); err != nil {
			break // the session has ended
		}
		_, _ = h.grants.Watch(h.ctx, &pb.WatchRequest{Session: h.session, RequestId: id})
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
	must.Report(t, h.contend(t.Context(), id, "/l"))
	_, abandon := h.grants.Abandon(t.Context(), &pb.AbandonRequest{Session: h.session, RequestId: id + "i"})
	_, put := pb.NewQueueServiceClient(h.conn).PutElements(t.Context(), &pb.PutElementsRequest{Session: h.session, RequestId: id + "i"})
	for _, err := range []error{h.contend(t.Context(), id+"i", "/l"), abandon, put} {
		if e, _ := wire.Error(err); !errors.Is(e, recipes.ErrInvalid) || !strings.Contains(err.Error(), "request_id has 129 bytes") {
			t.Error(err)
		}
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
