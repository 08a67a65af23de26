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
	if withoutStream {
		t.Skip("there is none")
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
	if withoutStream {
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
