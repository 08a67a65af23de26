package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// deadlines notes the deadlines of the puts that reach a session.
type deadlines struct {
	recipes.Client
	puts chan time.Time
}

type notingQueue struct {
	recipes.Queue
	puts chan time.Time
}

func (d deadlines) Queue(string, recipes.QueueConfig) (recipes.Queue, error) {
	return notingQueue{puts: d.puts}, nil
}

func (q notingQueue) PutMany(ctx context.Context, _ ...[]byte) ([]recipes.ElementID, error) {
	end, _ := ctx.Deadline()
	q.puts <- end
	return nil, nil
}

// A put that waits for capacity gives up before its caller does, so that the caller gets the
// answer that nothing was put. A put that does not wait has all of the caller's time.
func TestAPutThatWaitsGivesUpBeforeItsCaller(t *testing.T) {
	puts := make(chan time.Time, 2)
	h := newRawHost(t, server.Config{Open: func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		s, err := new(fake.World).Open(ctx, cfg)
		return deadlines{s, puts}, err
	}})
	h.open(nil)
	ctx, cancel := context.WithTimeout(h.ctx, 10*time.Minute) // subject: the deadline that reaches the session
	defer cancel()
	end, _ := ctx.Deadline()
	put := func(capacity int32) time.Time {
		must.Get(pb.NewQueueServiceClient(h.conn).PutElements(ctx, &pb.PutElementsRequest{Session: h.session, RequestId: "1",
			Queue: &pb.QueueRef{Path: "/q", Capacity: capacity}, Data: [][]byte{{1}}}))(t)
		return <-puts
	}
	// gRPC sends the time that is left. A slow request gets a later deadline.
	for {
		all, some := put(0), put(1)
		if all.Before(end.Add(-time.Millisecond)) {
			t.Fatalf("the caller gives up at %v, a put without bound at %v", end, all)
		}
		if all.Sub(some) > 200*time.Millisecond {
			return
		}
	}
}
