package server

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// An attempt waits for a grant of one of ss's recipes. If the recipe has a line, it
// calls joined once.
type attempt func(ctx context.Context, ss *session, joined func(recipes.Place)) (*held, error)

// contend runs the attempt for a request, or joins the call that already does, and
// returns the ticket with the grant. If a contender had joined a line, its error
// says at which place: the host tells the application in any case.
func (s *Server) contend(ctx context.Context, r request, announce bool, run attempt) (*ticket, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	var had *pb.Grant // in another plugin
	if r, ok := r.(interface{ GetResumed() *pb.Grant }); ok {
		had = r.GetResumed()
	}
	if err := ss.taking.allows(had); err != nil && !ss.tickets.knows(r.GetRequestId()) {
		return nil, err
	}
	var announced func(recipes.Place)
	if announce {
		announced = ss.announcer(ctx, r.GetRequestId())
	}
	c, err := ss.tickets.call(ctx, r.GetRequestId(), had.GetToken() != 0, announced, run)
	if c == nil || err == nil {
		return c, err
	}
	if had != nil {
		ss.tickets.retry(c)
	}
	return nil, wire.ToStatus(err, c.place)
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

// holding makes a held of a hold.
func holding(h recipes.Hold, err error) (*held, error) {
	if err != nil {
		return nil, err
	}
	return &held{Grant: h, giveBack: h.Release}, nil
}

func toGrant(c *ticket) *pb.Grant {
	return &pb.Grant{Token: int64(c.grant.Token()), Znode: c.grant.Znode()}
}

func toPlace(c *ticket) *pb.Place {
	if c.place == nil {
		return nil
	}
	return wire.ToPlace(*c.place)
}
