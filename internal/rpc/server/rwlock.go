package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type readWriteLockService struct {
	pb.UnimplementedReadWriteLockServiceServer
	*Server
}

func (s readWriteLockService) AcquireReadWrite(ctx context.Context, r *pb.AcquireReadWriteRequest) (*pb.AcquireReadWriteResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, ss *session, joined func(recipes.Place)) (*held, error) {
		switch recipes.Kind(r.GetKind()) {
		case recipes.KindSharedLock:
			dialect, err := wire.Dialect(r.GetDialect())
			if err != nil {
				return nil, err
			}
			l, err := ss.SharedLock(r.GetPath(), recipes.SharedLockConfig{
				Dialect: dialect, Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
				Revocable: r.GetRevocable(), Grace: r.GetGrace().AsDuration(),
			})
			if err != nil {
				return nil, err
			}
			return acquireMode(ctx, l, r)
		case recipes.KindPriorityLock:
			l, err := ss.PriorityLock(r.GetPath(), recipes.PriorityLockConfig{
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

func acquireMode[H recipes.Hold](ctx context.Context, lock readWriteLock[H], r *pb.AcquireReadWriteRequest) (*held, error) {
	try := r.GetTry()
	if had := r.GetResumed(); had != nil {
		h, err := takeUp[H](ctx, lock, had, try)
		return holding(h, err)
	}
	acquire := lock.AcquireRead
	switch mode := wire.Mode(r.GetMode()); {
	case mode == recipes.Reading && try:
		acquire = lock.TryRead
	case mode == recipes.Reading:
	case mode == recipes.Writing && try:
		acquire = lock.TryWrite
	case mode == recipes.Writing:
		acquire = lock.AcquireWrite
	default:
		return nil, fmt.Errorf("%w: the mode is not known", recipes.ErrInvalid)
	}
	h, err := acquire(ctx)
	return holding(h, err)
}

func (s readWriteLockService) Downgrade(ctx context.Context, r *pb.DowngradeRequest) (*pb.DowngradeResponse, error) {
	ss, c, err := s.granted(r)
	if err != nil {
		return nil, err
	}
	hold, err := as[recipes.SharedHold](c, "no shared lock")
	if err != nil {
		return nil, err
	}
	err = hold.Downgrade(ctx)
	ss.tickets.judge(c, err)
	return &pb.DowngradeResponse{}, err
}

func (s readWriteLockService) HandOff(ctx context.Context, r *pb.HandOffRequest) (*pb.HandOffResponse, error) {
	ss, c, err := s.granted(r)
	if err != nil {
		return nil, err
	}
	hold, err := as[recipes.PriorityHold](c, "no priority lock")
	if err != nil {
		return nil, err
	}
	err = hold.HandOff(ctx, r.GetSuccessor())
	// A host that does not get the answer, or is told that the outcome is unknown,
	// would take itself for the holder. The successor already is one.
	switch {
	case errors.Is(hold.Err(), recipes.ErrReleased): // as the hold may know though the call's time was up
		ss.tickets.finished(c)
		ss.tellLost(c, recipes.ErrReleased)
	case errors.Is(err, recipes.ErrUnknownOutcome):
		ss.tickets.watch(c)
	}
	ss.tickets.judge(c, err)
	return &pb.HandOffResponse{}, err
}

// revocable is a lock whose contenders can be asked to give way.
type revocable interface {
	Revoke(ctx context.Context, znode string) error
	RevokeForced(ctx context.Context, znode string) error
}

func (s readWriteLockService) Revoke(ctx context.Context, r *pb.RevokeRequest) (*pb.RevokeResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	var lock revocable
	switch recipes.Kind(r.GetKind()) { // how it contends does not matter here
	case recipes.KindSharedLock:
		var dialect recipes.Dialect
		if dialect, err = wire.Dialect(r.GetDialect()); err == nil {
			lock, err = ss.SharedLock(r.GetPath(), recipes.SharedLockConfig{Dialect: dialect})
		}
	case recipes.KindPriorityLock:
		lock, err = ss.PriorityLock(r.GetPath(), recipes.PriorityLockConfig{})
	default:
		err = unknownKind(r.GetKind())
	}
	switch {
	case err != nil:
	case r.GetForce():
		err = lock.RevokeForced(ctx, r.GetZnode())
	default:
		err = lock.Revoke(ctx, r.GetZnode())
	}
	return &pb.RevokeResponse{}, err
}

func (s readWriteLockService) AwaitRevocation(ctx context.Context, r *pb.AwaitRevocationRequest) (*pb.AwaitRevocationResponse, error) {
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
