package server

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type semaphoreService struct {
	pb.UnimplementedSemaphoreServiceServer
	*Server
}

func (s semaphoreService) AcquirePermit(ctx context.Context, r *pb.AcquirePermitRequest) (*pb.AcquirePermitResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error) {
		semaphore, err := t.Semaphore(t.path, recipes.SemaphoreConfig{
			Dialect: t.dialect,
			Permits: int(r.GetPermits()), Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
		})
		if err != nil {
			return nil, err
		}
		ask := semaphore.Acquire
		if r.GetTry() {
			ask = semaphore.TryAcquire
		}
		return acquire(ctx, semaphore, r, ask, recipes.Hold.Release)
	})
	if err != nil {
		return nil, err
	}
	return &pb.AcquirePermitResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}

func (s semaphoreService) AcquireSlot(ctx context.Context, r *pb.AcquireSlotRequest) (*pb.AcquireSlotResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error) {
		slots, err := t.Slots(t.path, recipes.SemaphoreConfig{
			Permits: int(r.GetPermits()), Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
		})
		if err != nil {
			return nil, err
		}
		ask := slots.Acquire
		if r.GetTry() {
			ask = slots.TryAcquire
		}
		return acquire(ctx, slots, r, ask, recipes.SlotHold.Release)
	})
	if err != nil {
		return nil, err
	}
	h, err := as[recipes.SlotHold](c, "no slot")
	if err != nil {
		return nil, err
	}
	return &pb.AcquireSlotResponse{Grant: toGrant(c), Place: toPlace(c), Slot: int32(h.Slot())}, nil
}
