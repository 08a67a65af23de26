package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/client"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// deafTo loses the answers to a method.
func deafTo(method string) grpc.DialOption {
	return grpc.WithUnaryInterceptor(func(ctx context.Context, full string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, full, req, reply, cc, opts...)
		if strings.HasSuffix(full, "/"+method) {
			return status.Error(codes.Canceled, "the answer was lost")
		}
		return err
	})
}

// TestHandOffWhoseAnswerIsLostClosesLost: the heir holds by then, and two would
// take themselves for the holder.
func TestHandOffWhoseAnswerIsLostClosesLost(t *testing.T) {
	srv, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // after the sessions
	conn, _ := serveWith(t, zookeeper.Open, deafTo("HandOff"))
	host := client.New(conn)
	defer host.Close()
	ctx := bounded(t)
	lock := func(cfg recipes.PriorityLockConfig) recipes.PriorityLock {
		s, err := host.Open(ctx, recipes.Config{Servers: []string{srv.Addr()}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.PriorityLock("/l", cfg)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	holder, err := lock(recipes.PriorityLockConfig{}).AcquireWrite(ctx)
	if err != nil {
		t.Fatal(err)
	}
	joined, granted := make(chan recipes.Place, 1), make(chan error, 1)
	heir := lock(recipes.PriorityLockConfig{Joined: func(p recipes.Place) { joined <- p }})
	go func() { _, err := heir.AcquireWrite(ctx); granted <- err }()

	lost := holder.Lost()
	if err := holder.HandOff(ctx, (<-joined).Znode); !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	if err := <-granted; err != nil {
		t.Fatal(err)
	}
	select {
	case <-lost:
	case <-ctx.Done():
		t.Fatal("the former holder does not hear that it holds no more")
	}
	if err := holder.Err(); !errors.Is(err, recipes.ErrReleased) {
		t.Error(err)
	}
}
