package server

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// request is a call that asks for a grant, or is about one.
type request interface {
	sessionRequest
	GetRequestId() string
}

// resumeRequest is a request of a host that may have had in another plugin what it asks for.
type resumeRequest interface {
	request
	GetResumed() *pb.Grant
}

// contend waits for the grant that a request asks for, or joins the call that already
// does, and returns its acquisition. If the recipe has a line, run calls joined once. If a
// contender had joined a line, its error says at which place: the host tells the
// application in any case.
func (s *Server) contend(ctx context.Context, r resumeRequest, announce bool, run func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error)) (*acquisition, error) {
	t, err := s.target(r)
	if err != nil {
		return nil, err
	}
	had := r.GetResumed()
	if err := t.resumption.allows(had); err != nil && !t.acquisitions.knows(r.GetRequestId()) {
		return nil, err
	}
	var announced func(recipes.Place)
	if announce {
		announced = t.announcer(ctx, r.GetRequestId())
	}
	c, err := t.acquisitions.call(ctx, r.GetRequestId(), had.GetToken() != 0, announced, contained(ctx, t, run))
	if c == nil || err == nil {
		return c, err
	}
	if had != nil {
		t.acquisitions.retry(c)
	}
	return nil, wire.ToStatus(err, c.place)
}

// acquire asks a recipe for a grant, or resumes the one that the host of r had.
func acquire[G recipes.Grant](ctx context.Context, recipe any, r resumeRequest, ask func(context.Context) (G, error), giveBack func(G, context.Context) error) (_ *grant, err error) {
	var g G
	if had := r.GetResumed(); had != nil {
		tries, ok := r.(interface{ GetTry() bool })
		g, err = resumeGrant[G](ctx, recipe, had, ok && tries.GetTry())
	} else {
		g, err = ask(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &grant{Grant: g, giveBack: func(ctx context.Context) error { return giveBack(g, ctx) }}, nil
}

// announcer returns how the host of a call is told where its contender has joined: by an
// early part of the answer, or else on the session's stream. The answer has the place in
// any case. The first in line gets it soon, and is told nothing else.
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

func toGrant(c *acquisition) *pb.Grant {
	return &pb.Grant{Token: int64(c.grant.Token()), Znode: c.grant.Znode()}
}

func toPlace(c *acquisition) *pb.Place {
	if c.place == nil {
		return nil
	}
	return wire.ToPlace(*c.place)
}
