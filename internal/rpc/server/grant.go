package server

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type grantService struct {
	pb.UnimplementedGrantServiceServer
	*Server
}

func (s grantService) Release(ctx context.Context, r *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	return withGrant(s.Server, r, "", func(ss *session, c *acquisition, _ recipes.Grant) (*pb.ReleaseResponse, error) {
		err := c.grant.release(ctx)
		if ctx.Err() != nil && err != nil {
			ss.acquisitions.awaitRelease(c)
		} else {
			ss.acquisitions.released(c, err)
		}
		return &pb.ReleaseResponse{}, err
	})
}

// awaitRelease waits in the background for a release that continues after its call, and then
// calls released.
func (a *acquisitions) awaitRelease(c *acquisition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.background(func() { a.released(c, c.grant.release(a.ss.ctx)) })
}

// released records the end of a release. If ZooKeeper refused the release, the grant is kept,
// so that the host can try again.
func (a *acquisitions) released(c *acquisition, err error) {
	if err == nil || errors.Is(err, recipes.ErrNotHeld) {
		a.finished(c)
	}
}

func (s grantService) Write(ctx context.Context, r *pb.WriteRequest) (*pb.WriteResponse, error) {
	return withGrant(s.Server, r, "", func(_ *session, _ *acquisition, g recipes.Grant) (*pb.WriteResponse, error) {
		return &pb.WriteResponse{}, g.Write(ctx, wire.Ops(r.GetOps())...)
	})
}

// judge finishes the acquisition if err means that the znode is deleted or the session lost. If
// the grant ended for another reason, its znode may exist: the host can still release it, or
// is doing so.
func (a *acquisitions) judge(c *acquisition, err error) {
	if errors.Is(err, recipes.ErrRemoved) || errors.Is(err, recipes.ErrSessionLost) {
		a.finished(c)
	}
}

func (s grantService) Watch(_ context.Context, r *pb.WatchRequest) (*pb.WatchResponse, error) {
	return withGrant(s.Server, r, "", func(ss *session, c *acquisition, _ recipes.Grant) (*pb.WatchResponse, error) {
		ss.acquisitions.watch(c)
		return &pb.WatchResponse{}, nil
	})
}

func (s grantService) Abandon(_ context.Context, r *pb.AbandonRequest) (*pb.AbandonResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	ss.acquisitions.abandon(r.GetRequestId())
	return &pb.AbandonResponse{}, nil
}
