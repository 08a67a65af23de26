package server_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/fake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// panicking is a session with a defect.
type panicking struct{ recipes.Session }

func (panicking) Stats(context.Context) (recipes.Stats, error) { panic("s3cret") }

// TestPanicInACarriedCallIsItsError: neither the session nor the other calls of the
// stream notice it.
func TestPanicInACarriedCallIsItsError(t *testing.T) {
	unary := 0
	count := func(ctx context.Context, method string, r, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		unary++
		return invoke(ctx, method, r, reply, cc, opts...)
	}
	conn, _ := serveWith(t, func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Session, error) {
		s, err := new(fake.World).Open(ctx, cfg)
		return panicking{s}, err
	}, grpc.WithChainUnaryInterceptor(count)) // behind what carries
	host := client.New(conn, nil)
	t.Cleanup(host.Close)
	s, err := host.Open(bounded(t), recipes.SessionConfig{Servers: []string{"fake"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stats(bounded(t)); !errors.Is(err, recipes.ErrInternal) {
		t.Errorf("the host is told %v", err)
	}
	l, err := s.Lock("/l", recipes.LockConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Acquire(bounded(t)); err != nil {
		t.Errorf("another call: %v", err)
	}
	if unary > 0 {
		t.Errorf("%d calls were gRPC's", unary)
	}
}

// TestOnlyAContenderThatWaitsIsToldItsPlaceEarly: the first in line has one answer, and
// the second a part that says where it stands, while it waits.
func TestOnlyAContenderThatWaitsIsToldItsPlaceEarly(t *testing.T) {
	conn, _ := serveWith(t, new(fake.World).Open)
	open, err := pb.NewSessionServiceClient(conn).Open(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	start := &pb.Start{Config: &pb.Config{Servers: []string{"fake"}}}
	if err := open.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Start{Start: start}}); err != nil {
		t.Fatal(err)
	}
	opened, err := open.Recv()
	if err != nil {
		t.Fatal(err)
	}
	st, err := pb.NewCallServiceClient(conn).Carry(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(id uint64, request string) *pb.Answer {
		t.Helper()
		payload, err := proto.Marshal(&pb.AcquireRequest{Session: opened.GetOpened().GetSession(), RequestId: request, Path: "/l", Announce: true})
		if err != nil {
			t.Fatal(err)
		}
		call := &pb.Call{Id: id, Method: pb.LockService_Acquire_FullMethodName, Payload: payload, Early: true}
		if err := st.Send(&pb.CarryRequest{Calls: []*pb.Call{call}}); err != nil {
			t.Fatal(err)
		}
		for {
			m, err := st.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if len(m.GetAnswers()) > 0 {
				return m.GetAnswers()[0]
			}
		}
	}
	if a := ask(1, "a"); a.GetId() != 1 || a.GetMore() {
		t.Errorf("the first in line: %v", a)
	}
	a := ask(2, "b")
	if place, ok := wire.EarlyPlace(a.GetPayload()); !ok || !a.GetMore() || place.Position != 1 {
		t.Errorf("the second: %v", a)
	}
}
