package server

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// request is a call that asks for a grant, or refers to one.
type request interface {
	sessionRequest
	GetRequestId() string
}

func (s service) Release(ctx context.Context, r *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	return &pb.ReleaseResponse{}, withGrant(s.Server, r, "", func(ss *session, c *acquisition, _ recipes.Grant) error {
		err := c.grant.release(ctx)
		if ctx.Err() != nil && err != nil {
			ss.acquisitions.awaitRelease(c)
		} else {
			ss.acquisitions.released(c, err)
		}
		return err
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

func (s service) Write(ctx context.Context, r *pb.WriteRequest) (*pb.WriteResponse, error) {
	return &pb.WriteResponse{}, withGrant(s.Server, r, "", func(ss *session, _ *acquisition, g recipes.Grant) error {
		ops := wire.Ops(r.GetOps())
		for i, op := range r.GetOps() {
			if op.GetKind() != pb.OpKind_OP_KIND_HELD {
				continue
			}
			other, err := ss.acquisitions.granted(op.GetRequestId())
			if err != nil {
				return &recipes.WriteError{Index: i, Err: err}
			}
			ops[i] = recipes.Held(other.grant.Grant)
		}
		return g.Write(ctx, ops...)
	})
}

// finishIfGone finishes the acquisition if err means that the znode is deleted or the session lost. If
// the grant ended for another reason, its znode may exist: the host can still release it, or
// is doing so. A *recipes.WriteError is about another grant.
func (a *acquisitions) finishIfGone(c *acquisition, err error) {
	if errors.As(err, new(*recipes.WriteError)) {
		return
	}
	if errors.Is(err, recipes.ErrRemoved) || errors.Is(err, recipes.ErrSessionLost) {
		a.finished(c)
	}
}

func (s service) Watch(_ context.Context, r *pb.WatchRequest) (*pb.WatchResponse, error) {
	return &pb.WatchResponse{}, withGrant(s.Server, r, "", func(ss *session, c *acquisition, _ recipes.Grant) error {
		ss.acquisitions.watch(c)
		return nil
	})
}

func (s service) Abandon(_ context.Context, r *pb.AbandonRequest) (*pb.AbandonResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	ss.acquisitions.abandon(r.GetRequestId())
	return &pb.AbandonResponse{}, nil
}
