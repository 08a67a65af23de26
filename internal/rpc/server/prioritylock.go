package server

import (
	"context"
	"errors"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type priorityLockService struct {
	pb.UnimplementedPriorityLockServiceServer
	*Server
}

func (s priorityLockService) AcquirePriority(ctx context.Context, r *pb.AcquirePriorityRequest) (*pb.AcquirePriorityResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, ss *session, joined func(recipes.Place)) (*held, error) {
		lock, err := ss.PriorityLock(r.GetPath(), recipes.PriorityLockConfig{
			Priority: int(r.GetPriority()), Ask: r.GetAsk(),
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
	return &pb.AcquirePriorityResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}

// priorityLock finds a lock; how it contends does not matter to those who look.
func (s *Server) priorityLock(handle, path string) (recipes.PriorityLock, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, err
	}
	return ss.PriorityLock(path, recipes.PriorityLockConfig{})
}

func (s priorityLockService) RevokePriority(ctx context.Context, r *pb.RevokePriorityRequest) (*pb.RevokePriorityResponse, error) {
	lock, err := s.priorityLock(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, err
	}
	return &pb.RevokePriorityResponse{}, revoke(ctx, lock, r.GetZnode(), r.GetForce())
}

func (s priorityLockService) HandOff(ctx context.Context, r *pb.HandOffRequest) (*pb.HandOffResponse, error) {
	ss, c, err := s.granted(r)
	if err != nil {
		return nil, err
	}
	hold, err := as[recipes.PriorityHold](c, "no priority lock")
	if err != nil {
		return nil, err
	}
	err = hold.HandOff(ctx, r.GetHeir())
	// A host that does not get the answer, or is told that nobody knows, would take
	// itself for the holder, and the heir is one already.
	switch {
	case errors.Is(hold.Err(), recipes.ErrReleased): // as the hold may know though the call's time was up
		ss.claims.finished(c)
		ss.tellLost(c, recipes.ErrReleased)
	case errors.Is(err, recipes.ErrUnknownOutcome):
		ss.claims.watch(c)
	}
	ss.claims.judge(c, err)
	return &pb.HandOffResponse{}, err
}
