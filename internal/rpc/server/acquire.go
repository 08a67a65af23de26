package server

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func (s service) Acquire(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	run, err := runnerOf(r)
	if err != nil {
		return nil, err
	}
	return s.contend(ctx, r, run)
}

// contend waits for the grant of a request, or joins the call that already waits for it. If it
// fails after a contender has joined, the error contains the place, because the host passes it to
// the application in any case.
func (s *Server) contend(ctx context.Context, r *pb.AcquireRequest, run runner) (*pb.AcquireResponse, error) {
	t, err := s.target(r)
	if err != nil {
		return nil, err
	}
	resumed := r.GetResumed()
	if err := t.resumption.allows(resumed); err != nil && !t.acquisitions.knows(r.GetRequestId()) {
		return nil, err
	}
	c, err := t.acquisitions.call(ctx, r.GetRequestId(), resumed.GetToken() != 0, t.announcer(ctx, r), func(ctx context.Context, joined func(recipes.Place)) (_ *grant, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = logPanic(p, s.rpcLog(), "an acquirer")
			}
		}()
		return run(ctx, t, joined)
	})
	if c == nil {
		return nil, err
	}
	if err != nil {
		if resumed != nil {
			t.acquisitions.retry(c)
		}
		return nil, wire.ToStatus(err, c.place)
	}
	return response(r, c)
}

// announcer returns how the host is notified of the place: by an early part of the answer, or
// else on the session's stream. It returns nil if the request asks for no notice. The answer has
// the place in any case. If the contender is first in the queue, no early part is sent, because the
// answer follows soon. A member of a double barrier waits for others whatever its place is.
func (ss *session) announcer(ctx context.Context, r *pb.AcquireRequest) func(recipes.Place) {
	early, entering := carry.Early(ctx), r.GetDoubleBarrier() != nil
	switch {
	case !r.GetAnnounce():
		return nil
	case early == nil:
		return func(p recipes.Place) {
			joined := &pb.Joined{RequestId: r.GetRequestId(), Place: wire.ToPlace(p)}
			ss.out.put(&pb.OpenResponse{Message: &pb.OpenResponse_Joined{Joined: joined}})
		}
	}
	return func(p recipes.Place) {
		if p.Position != 0 || entering {
			early(wire.ToEarlyPlace(p))
		}
	}
}
