package carry_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// listen serves connections for calls alone, with d or script.
func listen(t *testing.T, ctx context.Context, running *sync.WaitGroup, d *carry.Dispatcher, script func(*frames) error) net.Listener {
	l := must.Get(net.Listen("unix", filepath.Join(t.TempDir(), "s")))(t)
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				if script == nil {
					d.ServeConn(ctx, conn)
					return
				}
				f := newFrames(ctx, conn)
				defer f.close()
				if err := script(f); err != nil {
					b, _ := proto.Marshal(status.Convert(err).Proto())
					_ = f.Send(&pb.CarryResponse{Status: b})
				}
			})
		}
	})
	return l
}

func (p *pair) dial(context.Context) (net.Conn, error) {
	return net.Dial("unix", p.socket.Addr().String())
}

// host returns a scripted host that has read the limits.
func (p *pair) host(t *testing.T) *frames {
	t.Helper()
	conn := must.Get(p.dial(t.Context()))(t)
	f := newFrames(bounded(t), conn)
	t.Cleanup(f.close)
	var m pb.CarryResponse
	if err := f.receive(&m); err != nil || m.GetLimits() == nil {
		t.Fatal(&m, err)
	}
	return f
}

// frames is a connection on which a test writes arbitrary bytes.
type frames struct {
	conn  net.Conn
	ctx   context.Context
	close context.CancelFunc
}

func newFrames(ctx context.Context, conn net.Conn) *frames {
	f := &frames{conn: conn}
	f.ctx, f.close = context.WithCancel(ctx)
	context.AfterFunc(f.ctx, func() { _ = conn.Close() })
	return f
}

// Context returns a context that ends when the other side has closed the connection. The
// caller must not receive any more.
func (f *frames) Context() context.Context {
	go func() { // ends with the connection
		_, _ = io.Copy(io.Discard, f.conn)
		f.close()
	}()
	return f.ctx
}

func (f *frames) Send(m *pb.CarryResponse) error { return f.sendRaw(m) }

// sendRaw sends m. Its unknown fields are sent alone, unchanged.
func (f *frames) sendRaw(m proto.Message) error {
	if raw := m.ProtoReflect().GetUnknown(); len(raw) > 0 {
		_, err := f.conn.Write(raw)
		return err
	}
	return f.send(m)
}

func (f *frames) Recv() (*pb.CarryRequest, error) {
	m := new(pb.CarryRequest)
	return m, f.receive(m)
}

func (f *frames) send(m proto.Message) error {
	b, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	_, err = f.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func (f *frames) receive(m proto.Message) error {
	head := make([]byte, 4)
	if _, err := io.ReadFull(f.conn, head); err != nil {
		return err
	}
	b := make([]byte, binary.BigEndian.Uint32(head))
	if _, err := io.ReadFull(f.conn, b); err != nil {
		return err
	}
	return proto.Unmarshal(b, m)
}

// A dialer that fails is not an error.
func TestPluginWithoutConnectionsHasGRPC(t *testing.T) {
	p := newPair(t, setting{acquire: echo, dialer: func(context.Context) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }})
	if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{}); err != nil || p.unary.get() != 1 {
		t.Error(err, p.unary.get())
	}
	if err := p.calls.Err(); err != nil {
		t.Errorf("it is broken: %v", err)
	}
	if _, fresh := p.conn.Start(); !fresh {
		t.Error("it is not tried again")
	}
}

// A plugin that does not read cannot prevent the close.
func TestEndOfTheHostsContextClosesTheConnection(t *testing.T) {
	ended := make(chan struct{})
	p := newPair(t, setting{acquire: echo, script: func(f *frames) error {
		_ = f.Send(&pb.CarryResponse{Limits: wide})
		<-f.Context().Done()
		close(ended)
		return nil
	}})
	ctx, cancel := context.WithCancel(bounded(t))
	var call sync.WaitGroup
	call.Go(func() { _, _ = p.Acquire(ctx, &pb.AcquireRequest{Data: make([]byte, 20<<10)}) })
	p.cancelConn()
	closes(t, "the end of the connection", ended)
	cancel()
	call.Wait()
}

// The host would attribute Canceled to the caller, and not to the end of the plugin, after
// which another plugin continues.
func TestAnEndedPluginAnswersNoCallAsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := carry.NewDispatcher(carry.Config{})
		pb.RegisterGrantServiceServer(d, locks{acquire: func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		ctx, end := context.WithCancel(context.Background())
		host, plugin := net.Pipe()
		var served sync.WaitGroup
		served.Go(func() { d.ServeConn(ctx, slowToClose{plugin}) })
		f := newFrames(context.Background(), host)
		defer f.close()
		var m pb.CarryResponse
		if err := f.receive(&m); err != nil || m.GetLimits() == nil {
			t.Fatal(&m, err)
		}
		must.Do(t, f.send(&pb.CarryRequest{Calls: []*pb.Call{{Id: 1, Method: "/zkrecipes.v1.GrantService/Acquire"}}}))
		synctest.Wait()
		end()
		if err := f.receive(&m); err != io.EOF {
			t.Errorf("answered %v, %v", &m, err)
		}
		served.Wait()
	})
}

// slowToClose closes a connection after everything else has happened.
type slowToClose struct{ net.Conn }

func (c slowToClose) Close() error {
	time.Sleep(time.Second) // virtual
	return c.Conn.Close()
}

// A plugin that ends a connection sends the reason, while the host may be sending.
func TestLastMessageIsReadThoughAWriteHasFailed(t *testing.T) {
	left := make(chan struct{})
	s := setting{acquire: echo, script: func(f *frames) error {
		_ = f.Send(&pb.CarryResponse{Limits: wide})
		if _, err := f.Recv(); err != nil {
			return err
		}
		b, _ := proto.Marshal(status.Convert(wire.ToStatus(recipes.ErrInvalid)).Proto())
		_ = f.Send(&pb.CarryResponse{Status: b})
		_ = f.conn.Close()
		close(left)
		return nil
	}}
	s.wrap = func(conn net.Conn) net.Conn { return &gated{Conn: conn, failed: make(chan struct{}), first: true} }
	p := newPair(t, s)
	var calls sync.WaitGroup
	call := func() { _, _ = p.Acquire(t.Context(), &pb.AcquireRequest{}) }
	calls.Go(call)
	<-left
	calls.Go(call)
	closes(t, "the reason", p.calls.Broken())
	if err := p.calls.Err(); !errors.Is(err, recipes.ErrInvalid) {
		t.Error(err)
	}
	calls.Wait()
}

// gated is a connection whose reads, except the first, wait until a write has failed.
type gated struct {
	net.Conn
	failed chan struct{} // closed when a write has failed and was handled
	first  bool
	broken bool
	once   sync.Once
}

func (g *gated) Read(p []byte) (int, error) {
	if !g.first {
		<-g.failed
	}
	g.first = false
	return g.Conn.Read(p)
}

func (g *gated) Write(p []byte) (int, error) {
	n, err := g.Conn.Write(p)
	g.broken = err != nil
	return n, err
}

// SetReadDeadline and Close handle a failed write.
func (g *gated) SetReadDeadline(t time.Time) error { return g.then(g.Conn.SetReadDeadline(t)) }
func (g *gated) Close() error                      { return g.then(g.Conn.Close()) }

func (g *gated) then(err error) error {
	if g.broken {
		g.once.Do(func() { close(g.failed) })
	}
	return err
}
