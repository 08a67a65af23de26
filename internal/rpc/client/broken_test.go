package client_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// garbler replaces the next message on a connection of calls by an answer to a call that was
// never made, or duplicates the next calls.
type garbler struct{ answers, calls atomic.Bool }

// garbled is the host's end of such a connection. Its tests have few calls in progress, so
// each Read and each Write is one message.
type garbled struct {
	net.Conn
	*garbler
}

func (g garbled) Read(p []byte) (int, error) {
	if !g.answers.CompareAndSwap(true, false) {
		return g.Conn.Read(p)
	}
	b, err := proto.Marshal(&pb.CarryResponse{Answers: []*pb.Answer{{Id: 1 << 40}}})
	return copy(p, append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)), err
}

func (g garbled) Write(p []byte) (int, error) {
	if g.calls.CompareAndSwap(true, false) {
		_, _ = g.Conn.Write(p)
	}
	return g.Conn.Write(p)
}

// The sessions end with a typed error. The plugin survives and serves the next session.
func TestBrokenConnectionOfCallsEndsItsSessions(t *testing.T) {
	if way == "unary" {
		t.Skip("there is no connection of calls")
	}
	for name, test := range map[string]struct {
		garble func(*garbler)
		want   error
	}{
		"by the plugin": {func(g *garbler) { g.answers.Store(true) }, recipes.ErrInternal},
		"by the host":   {func(g *garbler) { g.calls.Store(true) }, recipes.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLink(t)
			s := l.open(t, 0)
			h := acquire(t, s)
			test.garble(&l.garbler)
			_, _ = s.Stats(ctx(t)) // may succeed or fail
			closes(t, "Done of the hold", h.Done())
			closes(t, "Done", s.Done())
			for _, want := range []error{test.want, recipes.ErrPluginLost, recipes.ErrSessionLost} {
				if err := s.Err(); !errors.Is(err, want) {
					t.Errorf("lost by %v; want %v", err, want)
				}
			}
			l.inLine(t, 0) // the plugin has closed it
			next := l.open(t, 0)
			acquire(t, next)
			must.Report(t, next.Err())
		})
	}
}

// A session waits until it is known whether its calls are carried.
func TestCallsOfASessionAreCarried(t *testing.T) {
	if way == "unary" {
		t.Skip("no calls are carried")
	}
	unary := newSpy()
	l := newLink(t, grpc.WithChainUnaryInterceptor(unary.intercept)) // sees the calls that are not carried
	h := acquire(t, l.open(t, 0))
	must.Report(t, h.Write(ctx(t)))
	must.Report(t, h.Release(ctx(t)))
	if n := unary.total(); n > 0 {
		t.Errorf("%d calls were gRPC's: %v", n, unary.calls)
	}
}

// The place arrives with the answer, not on the session's stream.
func TestPlaceTravelsWithTheAnswer(t *testing.T) {
	if way == "unary" {
		t.Skip("without carried calls the session's stream reports the place")
	}
	var places placeCounter
	l := newLink(t, grpc.WithChainStreamInterceptor(places.intercept))
	s := l.open(t, 0)
	for range 2 {
		joined := 0
		h, err := lock(t, s, recipes.LockConfig{Joined: func(recipes.Place) { joined++ }}).Acquire(ctx(t))
		if err != nil || joined != 1 {
			t.Fatal(joined, err)
		}
		waiting, got := make(chan recipes.Place, 1), make(chan error, 1)
		next := lock(t, s, recipes.LockConfig{Joined: func(p recipes.Place) { waiting <- p }})
		go func() {
			h, err := next.Acquire(ctx(t))
			if err == nil {
				err = h.Release(ctx(t))
			}
			got <- err
		}()
		if p := <-waiting; p.Position != 1 {
			t.Error(p)
		}
		must.Report(t, h.Release(ctx(t)))
		must.Report(t, <-got)
	}
	if n := places.Load(); n > 0 {
		t.Errorf("%d places on the session's stream", n)
	}
}

// placeCounter counts the places on the session's stream.
type placeCounter struct{ atomic.Int32 }

func (c *placeCounter) intercept(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	st, err := open(ctx, desc, cc, method, opts...)
	return placed{st, c}, err
}

type placed struct {
	grpc.ClientStream
	*placeCounter
}

func (p placed) RecvMsg(m any) error {
	err := p.ClientStream.RecvMsg(m)
	if r, ok := m.(*pb.OpenResponse); ok && r.GetJoined() != nil {
		p.Add(1)
	}
	return err
}
