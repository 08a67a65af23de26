package server_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/fake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
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
