package client_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// garbler adds to the next answers on a stream of calls one that nobody waits for, or
// has the next calls repeat an id.
type garbler struct{ answers, calls atomic.Bool }

func (g *garbler) option() grpc.DialOption { return grpc.WithStreamInterceptor(g.intercept) }

func (g *garbler) intercept(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	st, err := open(ctx, desc, cc, method, opts...)
	if err != nil || method != pb.CallService_Carry_FullMethodName {
		return st, err
	}
	return garbled{st, g}, nil
}

type garbled struct {
	grpc.ClientStream
	*garbler
}

func (g garbled) RecvMsg(m any) error {
	err := g.ClientStream.RecvMsg(m)
	if err == nil && g.answers.CompareAndSwap(true, false) {
		r := m.(*pb.CarryResponse)
		r.Answers = append(r.Answers, &pb.Answer{Id: 1 << 40})
	}
	return err
}

func (g garbled) SendMsg(m any) error {
	if r := m.(*pb.CarryRequest); g.calls.CompareAndSwap(true, false) {
		r.Calls = append(r.Calls, r.GetCalls()...)
	}
	return g.ClientStream.SendMsg(m)
}

// TestBrokenStreamOfCallsEndsItsSessions: with a typed error. The plugin lives on and
// serves the next session.
func TestBrokenStreamOfCallsEndsItsSessions(t *testing.T) {
	if way != "" {
		t.Skip("there is none") // package carry breaks connections
	}
	for name, test := range map[string]struct {
		garble func(*garbler)
		want   error
	}{
		"by the plugin": {func(g *garbler) { g.answers.Store(true) }, recipes.ErrInternal},
		"by the host":   {func(g *garbler) { g.calls.Store(true) }, recipes.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			var g garbler
			l := newLink(t, g.option())
			s := l.open(t, 0)
			h := acquire(t, s)
			test.garble(&g)
			_, _ = s.Stats(ctx(t)) // answered, or not
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
			if err := next.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCallsOfASessionAreCarried: a session does not wait to learn that by chance.
func TestCallsOfASessionAreCarried(t *testing.T) {
	if way == "unary" {
		t.Skip("none are")
	}
	unary := newSpy()
	l := newLink(t, grpc.WithChainUnaryInterceptor(unary.intercept)) // behind what carries
	h := acquire(t, l.open(t, 0))
	if err := h.Write(ctx(t)); err != nil {
		t.Error(err)
	}
	if err := h.Release(ctx(t)); err != nil {
		t.Error(err)
	}
	if n := unary.total(); n > 0 {
		t.Errorf("%d calls were gRPC's: %v", n, unary.calls)
	}
}

// TestPlaceTravelsWithTheAnswer: the session's stream has other things to tell.
func TestPlaceTravelsWithTheAnswer(t *testing.T) {
	if way == "unary" {
		t.Skip("there the session's stream tells it")
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
		if err := h.Release(ctx(t)); err != nil {
			t.Error(err)
		}
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
	if n := places.Load(); n > 0 {
		t.Errorf("%d places on the session's stream", n)
	}
}

// placeCounter counts the places that the session's stream tells.
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
