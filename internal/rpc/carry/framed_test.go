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

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// listen serves connections that have calls and nothing else: by d, or by service.
func listen(t *testing.T, ctx context.Context, running *sync.WaitGroup, d *carry.Dispatcher, service pb.CallServiceServer) net.Listener {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				if service == nil {
					d.ServeConn(ctx, conn)
					return
				}
				st := newFrames(ctx, conn)
				defer st.close()
				if err := service.Carry(st); err != nil {
					b, _ := proto.Marshal(status.Convert(err).Proto())
					_ = st.Send(&pb.CarryResponse{Status: b})
				}
			})
		}
	})
	return l
}

func (p *pair) dial(context.Context) (net.Conn, error) {
	return net.Dial("unix", p.socket.Addr().String())
}

// frames is a connection of a test's, which writes what it likes.
type frames struct {
	callStream
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

// Context ends when the other side has closed the connection. Nobody receives by then.
func (f *frames) Context() context.Context {
	go func() { // ends with the connection
		_, _ = io.Copy(io.Discard, f.conn)
		f.close()
	}()
	return f.ctx
}

// Send sends m. Its unknown fields are sent alone, as they are.
func (f *frames) Send(m *pb.CarryResponse) error {
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

// TestHostThatBreaksTheRulesOfAConnectionIsRefused: with a typed error, after which the
// connection ends. Its calls are cancelled, and the plugin goes on.
func TestHostThatBreaksTheRulesOfAConnectionIsRefused(t *testing.T) {
	call := func(id uint64) *pb.CarryRequest {
		return &pb.CarryRequest{Calls: []*pb.Call{{Id: id, Method: "/zkrecipes.v1.LockService/Acquire"}}}
	}
	for name, test := range map[string]struct {
		sends func(*frames) error
		want  error
	}{
		"an id again": {func(f *frames) error { return errors.Join(f.send(call(1)), f.send(call(1))) }, recipes.ErrInvalid},
		"a long message": {func(f *frames) error {
			_, err := f.conn.Write([]byte{0, 1, 0, 1})
			return err
		}, recipes.ErrLimit},
		"a length without end": {func(f *frames) error {
			_, err := f.conn.Write([]byte{0xff, 0xff, 0xff, 0xff})
			return err
		}, recipes.ErrLimit},
		"no message": {func(f *frames) error {
			_, err := f.conn.Write([]byte{0, 0, 0, 1, 0xff})
			return err
		}, recipes.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			var running sync.WaitGroup
			p := newPair(t, setting{alone: true, acquire: func(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
				if r.GetPath() == "free" {
					return echo(ctx, r)
				}
				running.Add(1)
				defer running.Done()
				<-ctx.Done()
				return nil, ctx.Err()
			}})
			conn, err := p.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f := newFrames(bounded(t), conn)
			defer f.close()
			var m pb.CarryResponse
			if err := f.receive(&m); err != nil || m.GetLimits() == nil {
				t.Fatal(&m, err)
			}
			if err := test.sends(f); err != nil {
				t.Fatal(err)
			}
			for len(m.GetStatus()) == 0 && err == nil {
				err = f.receive(&m)
			}
			if err != nil {
				t.Fatal(err)
			}
			var s spb.Status
			if err := proto.Unmarshal(m.GetStatus(), &s); err != nil {
				t.Fatal(err)
			}
			if err, said := wire.Error(status.ErrorProto(&s)); !said || !errors.Is(err, test.want) {
				t.Error(err)
			}
			if err := f.receive(&m); err != io.EOF {
				t.Errorf("the connection goes on: %v", err)
			}
			running.Wait()
			if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{Path: "free"}); err != nil || p.unary.get() > 0 {
				t.Errorf("another connection: %v", err)
			}
		})
	}
}

// TestPluginThatMakesNoSenseOnAConnectionIsGivenUp: as on a stream, where gRPC would
// notice it.
func TestPluginThatMakesNoSenseOnAConnectionIsGivenUp(t *testing.T) {
	for name, raw := range map[string][]byte{
		"a long message": {0, 0x10, 0, 1},
		"no message":     {0, 0, 0, 1, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, setting{alone: true, acquire: echo, service: scripted{script: func(st callStream) error {
				_ = st.Send(&pb.CarryResponse{Limits: wide})
				nonsense := new(pb.CarryResponse)
				nonsense.ProtoReflect().SetUnknown(raw)
				_ = st.Send(nonsense)
				<-st.Context().Done() // the host hangs up
				return nil
			}}})
			closes(t, "the end of the connection", p.stream.Broken())
			if err := p.stream.Err(); !errors.Is(err, recipes.ErrPluginLost) || !errors.Is(err, recipes.ErrInternal) {
				t.Error(err)
			}
		})
	}
}

// TestPluginWithoutConnectionsHasStreams: a dialer that fails is no error.
func TestPluginWithoutConnectionsHasStreams(t *testing.T) {
	p := newPair(t, setting{acquire: echo, dialer: func(context.Context) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }})
	if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{}); err != nil || p.unary.get() > 0 {
		t.Error(err, p.unary.get())
	}
}

// TestEndOfTheHostsContextClosesTheConnection: a plugin that reads no more cannot
// prevent it.
func TestEndOfTheHostsContextClosesTheConnection(t *testing.T) {
	ended := make(chan struct{})
	p := newPair(t, setting{alone: true, acquire: echo, service: scripted{script: func(st callStream) error {
		_ = st.Send(&pb.CarryResponse{Limits: wide})
		<-st.Context().Done()
		close(ended)
		return nil
	}}})
	ctx, cancel := context.WithCancel(bounded(t))
	var call sync.WaitGroup
	call.Go(func() { _, _ = p.Acquire(ctx, &pb.AcquireRequest{Data: make([]byte, 20<<10)}) })
	p.hangUp()
	closes(t, "the end of the connection", ended)
	cancel()
	call.Wait()
}

// TestAnEndedPluginAnswersNoCallAsCancelled: the host would take it for the caller's
// wish, and not for the end of the plugin, after which another one goes on.
func TestAnEndedPluginAnswersNoCallAsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := carry.NewDispatcher(carry.Config{})
		pb.RegisterLockServiceServer(d, locks{acquire: func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
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
		if err := f.send(&pb.CarryRequest{Calls: []*pb.Call{{Id: 1, Method: "/zkrecipes.v1.LockService/Acquire"}}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		end()
		if err := f.receive(&m); err != io.EOF {
			t.Errorf("answered %v, %v", &m, err)
		}
		served.Wait()
	})
}

// slowToClose lets everything else happen before it closes a connection.
type slowToClose struct{ net.Conn }

func (c slowToClose) Close() error {
	time.Sleep(time.Second) // of the bubble
	return c.Conn.Close()
}
