package link_test

import (
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
			l.inLine(t, 0) // the plugin has closed the session
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
