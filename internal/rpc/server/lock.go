package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type lockService struct {
	pb.UnimplementedLockServiceServer
	*Server
}

func (s lockService) Acquire(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error) {
		lock, err := t.Lock(t.path, recipes.LockConfig{
			Dialect: t.dialect, Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
		})
		if err != nil {
			return nil, err
		}
		ask := lock.Acquire
		if r.GetTry() {
			ask = lock.TryAcquire
		}
		return acquire(ctx, lock, r, ask, recipes.Hold.Release)
	})
	if err != nil {
		return nil, err
	}
	return &pb.AcquireResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}

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

type readWriteLockService struct {
	pb.UnimplementedReadWriteLockServiceServer
	*Server
}

func (s readWriteLockService) AcquireReadWrite(ctx context.Context, r *pb.AcquireReadWriteRequest) (*pb.AcquireReadWriteResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error) {
		switch recipes.Kind(r.GetKind()) {
		case recipes.KindSharedLock:
			l, err := t.SharedLock(t.path, recipes.SharedLockConfig{
				Dialect: t.dialect, Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
				Revocable: r.GetRevocable(), Grace: r.GetGrace().AsDuration(),
			})
			if err != nil {
				return nil, err
			}
			return acquireMode(ctx, l, r)
		case recipes.KindPriorityLock:
			l, err := t.PriorityLock(t.path, recipes.PriorityLockConfig{
				Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
				Revocable: r.GetRevocable(), Grace: r.GetGrace().AsDuration(),
				Priority: int(r.GetPriority()), Ask: r.GetAsk(),
			})
			if err != nil {
				return nil, err
			}
			return acquireMode(ctx, l, r)
		}
		return nil, unknownKind(r.GetKind())
	})
	if err != nil {
		return nil, err
	}
	return &pb.AcquireReadWriteResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}

func unknownKind(kind string) error {
	return fmt.Errorf("%w: %q is not a kind of read-write lock", recipes.ErrInvalid, kind)
}

// readWriteLock is a shared lock or a priority lock.
type readWriteLock[H recipes.Hold] interface {
	AcquireRead(context.Context) (H, error)
	AcquireWrite(context.Context) (H, error)
	TryRead(context.Context) (H, error)
	TryWrite(context.Context) (H, error)
}

func acquireMode[H recipes.Hold](ctx context.Context, lock readWriteLock[H], r *pb.AcquireReadWriteRequest) (*grant, error) {
	ask := lock.AcquireRead
	switch mode, try := wire.Mode(r.GetMode()), r.GetTry(); {
	case mode == recipes.Reading && try:
		ask = lock.TryRead
	case mode == recipes.Reading:
	case mode == recipes.Writing && try:
		ask = lock.TryWrite
	case mode == recipes.Writing:
		ask = lock.AcquireWrite
	case r.GetResumed() == nil: // the znode of a resumed hold has the mode
		return nil, fmt.Errorf("%w: the mode is not known", recipes.ErrInvalid)
	}
	return acquire(ctx, lock, r, ask, H.Release)
}

func (s readWriteLockService) Downgrade(ctx context.Context, r *pb.DowngradeRequest) (*pb.DowngradeResponse, error) {
	return withGrant(s.Server, r, "no shared lock", func(_ *session, _ *acquisition, h recipes.SharedHold) (*pb.DowngradeResponse, error) {
		return &pb.DowngradeResponse{}, h.Downgrade(ctx)
	})
}

func (s readWriteLockService) HandOff(ctx context.Context, r *pb.HandOffRequest) (*pb.HandOffResponse, error) {
	return withGrant(s.Server, r, "no priority lock", func(ss *session, c *acquisition, h recipes.PriorityHold) (*pb.HandOffResponse, error) {
		err := h.HandOff(ctx, r.GetSuccessor())
		// After a handoff the successor holds the lock. A host that gets no answer, or an
		// unknown outcome, would still consider itself the holder. So the session's stream
		// reports the loss too.
		switch {
		case errors.Is(h.Err(), recipes.ErrReleased): // even if err is the call's deadline
			ss.acquisitions.finished(c)
			ss.reportLoss(c, recipes.ErrReleased)
		case errors.Is(err, recipes.ErrUnknownOutcome):
			ss.acquisitions.watch(c)
		}
		return &pb.HandOffResponse{}, err
	})
}

// revocable is a lock whose holders can be asked to release it.
type revocable interface {
	Revoke(ctx context.Context, znode string) error
	RevokeForced(ctx context.Context, znode string) error
}

// revocableLock opens the lock of a request. Its configuration does not matter for a
// revocation.
func revocableLock(kind string) func(target) (revocable, error) {
	return func(t target) (revocable, error) {
		switch recipes.Kind(kind) {
		case recipes.KindSharedLock:
			return t.SharedLock(t.path, recipes.SharedLockConfig{Dialect: t.dialect})
		case recipes.KindPriorityLock:
			return t.PriorityLock(t.path, recipes.PriorityLockConfig{})
		}
		return nil, unknownKind(kind)
	}
}

func (s readWriteLockService) Revoke(ctx context.Context, r *pb.RevokeRequest) (*pb.RevokeResponse, error) {
	return with(s.Server, r, revocableLock(r.GetKind()), func(l revocable) (*pb.RevokeResponse, error) {
		if r.GetForce() {
			return &pb.RevokeResponse{}, l.RevokeForced(ctx, r.GetZnode())
		}
		return &pb.RevokeResponse{}, l.Revoke(ctx, r.GetZnode())
	})
}

func (s readWriteLockService) AwaitRevocation(ctx context.Context, r *pb.AwaitRevocationRequest) (*pb.AwaitRevocationResponse, error) {
	return withGrant(s.Server, r, "nothing revocable", func(ss *session, c *acquisition, h interface{ Revoked() <-chan struct{} }) (*pb.AwaitRevocationResponse, error) {
		select {
		case <-h.Revoked():
			return &pb.AwaitRevocationResponse{}, nil
		case <-c.grant.Done():
			return nil, c.grant.Err()
		case <-ss.ctx.Done():
			return nil, lost(ss)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}
