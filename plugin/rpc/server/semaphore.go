package server

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type semaphoreService struct {
	pb.UnimplementedSemaphoreServiceServer
	*Server
}

func (s semaphoreService) AcquirePermit(ctx context.Context, r *pb.AcquirePermitRequest) (*pb.AcquirePermitResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	c, err := ss.claims.call(ctx, r.GetRequestId(), r.GetAnnounce(), ss.acquirePermit(r))
	if err != nil {
		return nil, claimStatus(c, err)
	}
	return &pb.AcquirePermitResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}

func (ss *session) acquirePermit(r *pb.AcquirePermitRequest) contest {
	return func(ctx context.Context, joined func(recipes.Place)) (*held, error) {
		semaphore, err := ss.Semaphore(r.GetPath(), recipes.SemaphoreConfig{
			Permits: int(r.GetPermits()), Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
		})
		if err != nil {
			return nil, err
		}
		acquire := semaphore.Acquire
		if r.GetTry() {
			acquire = semaphore.TryAcquire
		}
		hold, err := acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &held{Grant: hold, giveBack: hold.Release}, nil
	}
}

func (s semaphoreService) PermitContenders(ctx context.Context, r *pb.PermitContendersRequest) (*pb.PermitContendersResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	// How many permits there are does not matter to those who look.
	semaphore, err := ss.Semaphore(r.GetPath(), recipes.SemaphoreConfig{Permits: 1})
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	line, err := semaphore.Contenders(ctx)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.PermitContendersResponse{Contenders: wire.ToContenders(line)}, nil
}
