package server

import (
	"context"
	"fmt"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type priorityLockService struct {
	pb.UnimplementedPriorityLockServiceServer
	*Server
}

func (s priorityLockService) AcquirePriority(ctx context.Context, r *pb.AcquirePriorityRequest) (*pb.AcquirePriorityResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	c, err := ss.claims.call(ctx, r.GetRequestId(), r.GetAnnounce(), ss.acquirePriority(r))
	if err != nil {
		return nil, claimStatus(c, err)
	}
	return &pb.AcquirePriorityResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}

func (ss *session) acquirePriority(r *pb.AcquirePriorityRequest) contest {
	return func(ctx context.Context, joined func(recipes.Place)) (*held, error) {
		lock, err := ss.PriorityLock(r.GetPath(), recipes.PriorityLockConfig{
			Priority: int(r.GetPriority()), Ask: r.GetAsk(),
			Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
			Revocable: r.GetRevocable(), Grace: r.GetGrace().AsDuration(),
		})
		if err != nil {
			return nil, err
		}
		acquire, err := priorityWay(lock, wire.Mode(r.GetMode()), r.GetTry())
		if err != nil {
			return nil, err
		}
		hold, err := acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &held{Grant: hold, giveBack: hold.Release}, nil
	}
}

func priorityWay(lock recipes.PriorityLock, mode recipes.Mode, try bool) (func(context.Context) (recipes.PriorityHold, error), error) {
	switch {
	case mode == recipes.Reading && try:
		return lock.TryRead, nil
	case mode == recipes.Reading:
		return lock.AcquireRead, nil
	case mode == recipes.Writing && try:
		return lock.TryWrite, nil
	case mode == recipes.Writing:
		return lock.AcquireWrite, nil
	}
	return nil, fmt.Errorf("%w: the mode is not known", recipes.ErrInvalid)
}

// priorityLock finds a lock; how it contends does not matter to those who look.
func (s *Server) priorityLock(handle, path string) (recipes.PriorityLock, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, err
	}
	return ss.PriorityLock(path, recipes.PriorityLockConfig{})
}

func (s priorityLockService) PriorityContenders(ctx context.Context, r *pb.PriorityContendersRequest) (*pb.PriorityContendersResponse, error) {
	lock, err := s.priorityLock(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	line, err := lock.Contenders(ctx)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.PriorityContendersResponse{Contenders: wire.ToPriorityContenders(line)}, nil
}

func (s priorityLockService) RevokePriority(ctx context.Context, r *pb.RevokePriorityRequest) (*pb.RevokePriorityResponse, error) {
	lock, err := s.priorityLock(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	revoke := lock.Revoke
	if r.GetForce() {
		revoke = lock.RevokeForced
	}
	return &pb.RevokePriorityResponse{}, wire.ToStatus(revoke(ctx, r.GetZnode()), nil)
}

func (s priorityLockService) HandOff(ctx context.Context, r *pb.HandOffRequest) (*pb.HandOffResponse, error) {
	ss, c, err := s.granted(r.GetSession(), r.GetRequestId())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	hold, ok := c.grant.Grant.(recipes.PriorityHold)
	if !ok {
		return nil, wire.ToStatus(fmt.Errorf("%w: request %s holds no priority lock", recipes.ErrInvalid, c.id), nil)
	}
	err = hold.HandOff(ctx, r.GetHeir())
	if err == nil {
		ss.claims.finished(c)
	}
	ss.claims.judge(c, err)
	return &pb.HandOffResponse{}, wire.ToStatus(err, nil)
}
