package server

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type sharedLockService struct {
	pb.UnimplementedSharedLockServiceServer
	*Server
}

func (s sharedLockService) AcquireShared(ctx context.Context, r *pb.AcquireSharedRequest) (*pb.AcquireSharedResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, ss *session, joined func(recipes.Place)) (*held, error) {
		lock, err := ss.SharedLock(r.GetPath(), recipes.SharedLockConfig{
			Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
			Revocable: r.GetRevocable(), Grace: r.GetGrace().AsDuration(),
		})
		if err != nil {
			return nil, err
		}
		return acquireMode(ctx, lock, r.GetMode(), r.GetTry())
	})
	if err != nil {
		return nil, err
	}
	return &pb.AcquireSharedResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
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
	ss, c, err := s.granted(r)
	if err != nil {
		return nil, err
	}
	hold, err := as[recipes.SharedHold](c, "no shared lock")
	if err != nil {
		return nil, err
	}
	err = hold.Downgrade(ctx)
	ss.claims.judge(c, err)
	return &pb.DowngradeResponse{}, err
}

func (s sharedLockService) Revoke(ctx context.Context, r *pb.RevokeRequest) (*pb.RevokeResponse, error) {
	lock, err := s.sharedLock(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, err
	}
	return &pb.RevokeResponse{}, revoke(ctx, lock, r.GetZnode(), r.GetForce())
}

func (s sharedLockService) AwaitRevocation(ctx context.Context, r *pb.AwaitRevocationRequest) (*pb.AwaitRevocationResponse, error) {
	ss, c, err := s.granted(r)
	if err != nil {
		return nil, err
	}
	hold, err := as[interface{ Revoked() <-chan struct{} }](c, "nothing revocable")
	if err != nil {
		return nil, err
	}
	select {
	case <-hold.Revoked():
		return &pb.AwaitRevocationResponse{}, nil
	case <-c.grant.Done():
		err = c.grant.Err()
	case <-ss.ctx.Done():
		err = lost(ss)
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, err
}
