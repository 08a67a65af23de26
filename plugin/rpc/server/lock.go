package server

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type lockService struct {
	pb.UnimplementedLockServiceServer
	*Server
}

func (s lockService) Acquire(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	c, err := ss.claims.call(ctx, r.GetRequestId(), r.GetAnnounce(), ss.acquire(r))
	if err != nil {
		return nil, claimStatus(c, err)
	}
	return &pb.AcquireResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}

func (ss *session) acquire(r *pb.AcquireRequest) contest {
	return func(ctx context.Context, joined func(recipes.Place)) (*held, error) {
		lock, err := ss.Lock(r.GetPath(), recipes.LockConfig{
			Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
			Cohort: int(r.GetCohort()),
		})
		if err != nil {
			return nil, err
		}
		acquire := lock.Acquire
		if r.GetTry() {
			acquire = lock.TryAcquire
		}
		hold, err := acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &held{Grant: hold, giveBack: hold.Release}, nil
	}
}

func (s lockService) Contenders(ctx context.Context, r *pb.ContendersRequest) (*pb.ContendersResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	lock, err := ss.Lock(r.GetPath(), recipes.LockConfig{})
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	line, err := lock.Contenders(ctx)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.ContendersResponse{Contenders: wire.ToContenders(line)}, nil
}

func toGrant(c *claim) *pb.Grant {
	return &pb.Grant{Token: int64(c.grant.Token()), Znode: c.grant.Znode()}
}

func toPlace(c *claim) *pb.Place {
	if c.place == nil {
		return nil
	}
	return wire.ToPlace(*c.place)
}

// claimStatus is the status of a claim that failed; c is nil if nobody waited
// for its end.
func claimStatus(c *claim, err error) error {
	if c == nil {
		return wire.ToStatus(err, nil)
	}
	return wire.ToStatus(err, c.place)
}
