package client_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// It makes the call again with the same request id, when the next plugin serves the session.
func TestAWaiterThatCannotBeResumedAsksAgain(t *testing.T) {
	c := client.Unconnected()
	streams, ended := make(chan shared, 1), make(chan struct{})
	t.Cleanup(func() { close(ended) })
	_, kill := play(t, c, &scripted{
		open: func(st leaseStream, r *pb.Resume) error {
			both := shared{st, new(sync.Mutex)}
			streams <- both
			return serves(time.Hour)(both, r)
		},
		acquire: func(r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			joined := &pb.Joined{RequestId: r.GetRequestId(), Place: &pb.Place{Znode: "/l/lock-1", Position: 1}}
			st := <-streams
			_ = st.Send(&pb.OpenResponse{Message: &pb.OpenResponse_Joined{Joined: joined}})
			<-ended
			return nil, nil
		},
	})
	s := openScripted(t, c)
	places, got := make(chan recipes.Place, 2), make(chan error, 1)
	l := lock(t, s, recipes.LockConfig{Joined: func(p recipes.Place) { places <- p }})
	go func() { _, err := l.Acquire(ctx(t)); got <- err }()
	if p := next(t, places); p.Znode != "/l/lock-1" {
		t.Error(p)
	}
	kill()
	until(t, s, recipes.Suspended)
	asked := make(chan string, 9)
	play(t, c, &scripted{open: serves(time.Hour), acquire: func(r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		asked <- r.GetRequestId() + " " + r.GetResumed().GetZnode()
		if r.GetResumed() != nil {
			return nil, rpcwire.ToStatus(fmt.Errorf("resume: %w", recipes.ErrUnsupported), nil)
		}
		return &pb.AcquireResponse{Grant: &pb.Grant{Token: 5, Znode: "/l/lock-2"}}, nil
	}})
	must.Report(t, next(t, got))
	for _, want := range []string{"1 /l/lock-1", "1 "} {
		if as := next(t, asked); as != want {
			t.Errorf("asked %q, want %q", as, want)
		}
	}
	if len(places) > 0 {
		t.Error("joined was called with another place")
	}
}
