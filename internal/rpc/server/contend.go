package server

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// request is a call that asks for a grant, or refers to one.
type request interface {
	sessionRequest
	GetRequestId() string
}

// resumeRequest is a request for a grant that the host may already have from another plugin.
type resumeRequest interface {
	request
	GetResumed() *pb.Grant
}

// A runner is an acquirer for the recipe of a target.
type runner = func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error)

// An answer is what the responses to the calls that ask for a grant have in common.
type answer struct {
	of    *acquisition
	grant *pb.Grant
	place *pb.Place // nil if the recipe has no wait queue
}

// contend waits for the grant of a request, or joins the call that already waits for it. If the
// recipe has a wait queue, run calls joined once. If it fails after a contender has joined, the
// error contains the place, because the host passes it to the application in any case.
func (s *Server) contend(ctx context.Context, r resumeRequest, announce bool, run runner) (a answer, _ error) {
	t, err := s.target(r)
	if err != nil {
		return a, err
	}
	resumed := r.GetResumed()
	if err := t.resumption.allows(resumed); err != nil && !t.acquisitions.knows(r.GetRequestId()) {
		return a, err
	}
	var announced func(recipes.Place)
	if announce {
		announced = t.announcer(ctx, r.GetRequestId())
	}
	c, err := t.acquisitions.call(ctx, r.GetRequestId(), resumed.GetToken() != 0, announced, func(ctx context.Context, joined func(recipes.Place)) (_ *grant, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = logPanic(p, s.rpcLog(), "an acquirer")
			}
		}()
		return run(ctx, t, joined)
	})
	if c == nil {
		return a, err
	}
	if err != nil {
		if resumed != nil {
			t.acquisitions.retry(c)
		}
		return a, wire.ToStatus(err, c.place)
	}
	a.of, a.grant = c, &pb.Grant{Token: int64(c.grant.Token()), Znode: c.grant.Znode()}
	if c.place != nil {
		a.place = wire.ToPlace(*c.place)
	}
	return a, nil
}

// granting returns a runner that opens the recipe and asks it for a grant, or resumes the grant or
// the place that r names.
func granting[R any, G recipes.Grant](r resumeRequest, open func(t target, joined func(recipes.Place)) (R, error),
	ask func(R, context.Context) (G, error), release func(G, context.Context) error) runner {
	return func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error) {
		recipe, err := open(t, joined)
		if err != nil {
			return nil, err
		}
		var g G
		if resumed := r.GetResumed(); resumed == nil {
			g, err = ask(recipe, ctx)
		} else {
			tries, ok := r.(interface{ GetTry() bool })
			g, err = resumeGrant[G](ctx, recipe, resumed, ok && tries.GetTry())
		}
		ends, ok := r.(interface{ GetEndsWithHost() bool })
		return &grant{
			Grant:        g,
			release:      func(ctx context.Context) error { return release(g, ctx) },
			endsWithHost: ok && ends.GetEndsWithHost(),
		}, err
	}
}

// either returns the method that a request calls: one that waits, or one that only tries.
func either[F any](r interface{ GetTry() bool }, wait, try F) F {
	if r.GetTry() {
		return try
	}
	return wait
}

// announcer returns how the host is notified of the place: by an early part of the answer, or
// else on the session's stream. The answer has the place in any case. If the contender is
// first in the queue, no early part is sent, because the answer follows soon.
func (ss *session) announcer(ctx context.Context, id string) func(recipes.Place) {
	early := carry.Early(ctx)
	if early == nil {
		return ss.announceOnStream(id)
	}
	return func(p recipes.Place) {
		if p.Position != 0 {
			early(wire.ToEarlyPlace(p))
		}
	}
}

func (ss *session) announceOnStream(id string) func(recipes.Place) {
	return func(p recipes.Place) {
		joined := &pb.Joined{RequestId: id, Place: wire.ToPlace(p)}
		ss.out.put(&pb.OpenResponse{Message: &pb.OpenResponse_Joined{Joined: joined}})
	}
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

// judge finishes the acquisition if err means that the znode is deleted or the session lost. If
// the grant ended for another reason, its znode may exist: the host can still release it, or
// is doing so. A *recipes.WriteError is about another grant.
func (a *acquisitions) judge(c *acquisition, err error) {
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
