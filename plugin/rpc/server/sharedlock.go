package server

import (
	"context"
	"fmt"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type sharedLockService struct {
	pb.UnimplementedSharedLockServiceServer
	*Server
}

func (s sharedLockService) AcquireShared(ctx context.Context, r *pb.AcquireSharedRequest) (*pb.AcquireSharedResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	c, err := ss.claims.call(ctx, r.GetRequestId(), r.GetAnnounce(), ss.acquireShared(r))
	if err != nil {
		return nil, claimStatus(c, err)
	}
	return &pb.AcquireSharedResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}

func (ss *session) acquireShared(r *pb.AcquireSharedRequest) contest {
	return func(ctx context.Context, joined func(recipes.Place)) (*held, error) {
		lock, err := ss.SharedLock(r.GetPath(), recipes.SharedLockConfig{
			Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
			Revocable: r.GetRevocable(), Grace: r.GetGrace().AsDuration(),
		})
		if err != nil {
			return nil, err
		}
		acquire, err := sharedWay(lock, wire.Mode(r.GetMode()), r.GetTry())
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

func sharedWay(lock recipes.SharedLock, mode recipes.Mode, try bool) (func(context.Context) (recipes.SharedHold, error), error) {
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

func (s sharedLockService) SharedContenders(ctx context.Context, r *pb.SharedContendersRequest) (*pb.SharedContendersResponse, error) {
	lock, err := s.sharedLock(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	line, err := lock.Contenders(ctx)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.SharedContendersResponse{Contenders: wire.ToSharedContenders(line)}, nil
}

// sharedLock finds a lock; how it waits does not matter to those who look.
func (s *Server) sharedLock(handle, path string) (recipes.SharedLock, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, err
	}
	return ss.SharedLock(path, recipes.SharedLockConfig{})
}

func (s sharedLockService) Downgrade(ctx context.Context, r *pb.DowngradeRequest) (*pb.DowngradeResponse, error) {
	ss, c, err := s.granted(r.GetSession(), r.GetRequestId())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	hold, ok := c.grant.Grant.(recipes.SharedHold)
	if !ok {
		return nil, wire.ToStatus(fmt.Errorf("%w: request %s holds no shared lock", recipes.ErrInvalid, c.id), nil)
	}
	err = hold.Downgrade(ctx)
	ss.claims.judge(c, err)
	return &pb.DowngradeResponse{}, wire.ToStatus(err, nil)
}

func (s sharedLockService) Revoke(ctx context.Context, r *pb.RevokeRequest) (*pb.RevokeResponse, error) {
	lock, err := s.sharedLock(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	revoke := lock.Revoke
	if r.GetForce() {
		revoke = lock.RevokeForced
	}
	return &pb.RevokeResponse{}, wire.ToStatus(revoke(ctx, r.GetZnode()), nil)
}

// revocable is a hold that can be asked for.
type revocable interface{ Revoked() <-chan struct{} }

func (s sharedLockService) AwaitRevocation(ctx context.Context, r *pb.AwaitRevocationRequest) (*pb.AwaitRevocationResponse, error) {
	ss, c, err := s.granted(r.GetSession(), r.GetRequestId())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	hold, ok := c.grant.Grant.(revocable)
	if !ok {
		return nil, wire.ToStatus(fmt.Errorf("%w: request %s holds nothing revocable", recipes.ErrInvalid, c.id), nil)
	}
	select {
	case <-hold.Revoked():
		return &pb.AwaitRevocationResponse{}, nil
	case <-c.grant.Lost():
		err = c.grant.Err()
	case <-ss.ctx.Done():
		err = lost(ss)
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, wire.ToStatus(err, nil)
}
