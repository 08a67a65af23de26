package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func (s service) Acquire(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	t, err := s.target(r)
	if err != nil {
		return nil, err
	}
	if err := t.resumption.allows(r.GetResumed()); err != nil && !t.acquisitions.knows(r.GetRequestId()) {
		return nil, err
	}
	c, err := t.acquisitions.call(ctx, t, r, acquire)
	if c == nil {
		return nil, err
	}
	if err != nil {
		if r.GetResumed() != nil {
			t.acquisitions.retry(c)
		}
		c.announce(carry.Early(ctx)) // the host passes the place to the application in any case
		return nil, err
	}
	return response(r, c)
}

// joined records where the contender has joined the wait queue, and tells the host of the first
// call, by an early part of the answer. For the first in the queue no part is sent: the answer
// follows soon, and has the place. A member of a double barrier waits for others whatever its
// place is.
func (c *acquisition) joined(p recipes.Place) {
	c.place = &p
	if p.Position != 0 || c.entersBarrier {
		c.announce(c.early)
	}
}

// announce sends the place, if it is known, to a host that reads early parts of the answer.
func (c *acquisition) announce(early func(proto.Message)) {
	if early != nil && c.place != nil {
		early(&pb.AcquireResponse{Place: wire.ToPlace(*c.place)})
	}
}

// Call makes a call whose answer has early parts: see carry.Early.
func (s service) Call(r *pb.CallRequest, st grpc.ServerStreamingServer[pb.CallResponse]) error {
	return s.calls.ServeInParts(r, st)
}
