package server

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func lockRunner(r *pb.AcquireRequest, m *pb.Lock) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.Lock, error) {
		return t.Lock(t.path, recipes.LockConfig{
			Dialect: t.dialect, Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
		})
	}
	return granting(r, open, either(r, recipes.Lock.Acquire, recipes.Lock.TryAcquire), recipes.Hold.Release)
}

func semaphoreConfig(r *pb.AcquireRequest, m *pb.Semaphore, t target, joined func(recipes.Place)) recipes.SemaphoreConfig {
	return recipes.SemaphoreConfig{
		Dialect: t.dialect, Permits: int(m.GetPermits()), Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
	}
}

func semaphoreRunner(r *pb.AcquireRequest, m *pb.Semaphore) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.Semaphore, error) {
		return t.Semaphore(t.path, semaphoreConfig(r, m, t, joined))
	}
	return granting(r, open, either(r, recipes.Semaphore.Acquire, recipes.Semaphore.TryAcquire), recipes.Hold.Release)
}

func slotsRunner(r *pb.AcquireRequest, m *pb.Semaphore) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.Slots, error) {
		return t.Slots(t.path, semaphoreConfig(r, m, t, joined))
	}
	return granting(r, open, either(r, recipes.Slots.Acquire, recipes.Slots.TryAcquire), recipes.SlotHold.Release)
}

func sharedLockRunner(r *pb.AcquireRequest, m *pb.SharedLock) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.SharedLock, error) {
		return t.SharedLock(t.path, recipes.SharedLockConfig{
			Dialect: t.dialect, Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
			Revocable: m.GetRevocable(), Grace: m.GetGrace().AsDuration(),
		})
	}
	return granting(r, open, inMode[recipes.SharedLock](r, m.GetMode()), recipes.SharedHold.Release)
}

func priorityLockRunner(r *pb.AcquireRequest, m *pb.PriorityLock) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.PriorityLock, error) {
		if err := t.plain(); err != nil {
			return nil, err
		}
		return t.PriorityLock(t.path, recipes.PriorityLockConfig{
			Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
			Revocable: m.GetRevocable(), Grace: m.GetGrace().AsDuration(),
			Priority: int(m.GetPriority()), Ask: m.GetAsk(),
		})
	}
	return granting(r, open, inMode[recipes.PriorityLock](r, m.GetMode()), recipes.PriorityHold.Release)
}

func electionRunner(r *pb.AcquireRequest, m *pb.Election) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.Election, error) {
		return t.Election(t.path, recipes.ElectionConfig{Dialect: t.dialect, Strategy: recipes.Strategy(m.GetStrategy()), Joined: joined})
	}
	campaign := func(e recipes.Election, ctx context.Context) (recipes.Leadership, error) {
		return e.Campaign(ctx, r.GetData())
	}
	return granting(r, open, waiting(r, campaign), recipes.Leadership.Resign)
}

type readWriteLock[H recipes.Hold] interface {
	AcquireRead(context.Context) (H, error)
	AcquireWrite(context.Context) (H, error)
	TryRead(context.Context) (H, error)
	TryWrite(context.Context) (H, error)
}

// inMode returns the method of the lock that acquires it in the mode of a request. A resumed hold
// does not need it: its znode has the mode.
func inMode[L readWriteLock[H], H recipes.Hold](r *pb.AcquireRequest, mode pb.Mode) func(L, context.Context) (H, error) {
	switch wire.Mode(mode) {
	case recipes.Reading:
		return either(r, L.AcquireRead, L.TryRead)
	case recipes.Writing:
		return either(r, L.AcquireWrite, L.TryWrite)
	}
	return func(L, context.Context) (none H, err error) {
		return none, fmt.Errorf("%w: the mode is not known", recipes.ErrInvalid)
	}
}

func (s service) Downgrade(ctx context.Context, r *pb.DowngradeRequest) (*pb.DowngradeResponse, error) {
	return &pb.DowngradeResponse{}, withGrant(s.Server, r, "no shared lock", func(_ *session, _ *acquisition, h recipes.SharedHold) error {
		return h.Downgrade(ctx)
	})
}

func (s service) HandOff(ctx context.Context, r *pb.HandOffRequest) (*pb.HandOffResponse, error) {
	return &pb.HandOffResponse{}, withGrant(s.Server, r, "no priority lock", func(ss *session, c *acquisition, h recipes.PriorityHold) error {
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
		return err
	})
}

// revocable is a lock whose holders can be asked to release it.
type revocable interface {
	Revoke(ctx context.Context, znode string) error
	RevokeForced(ctx context.Context, znode string) error
}

func unknownKind(kind string) error {
	return fmt.Errorf("%w: %q is not a kind of read-write lock", recipes.ErrInvalid, kind)
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

func (s service) Revoke(ctx context.Context, r *pb.RevokeRequest) (*pb.RevokeResponse, error) {
	return &pb.RevokeResponse{}, do(s.Server, r, revocableLock(r.GetKind()), func(l revocable) error {
		if r.GetForce() {
			return l.RevokeForced(ctx, r.GetZnode())
		}
		return l.Revoke(ctx, r.GetZnode())
	})
}

func (s service) AwaitRevocation(ctx context.Context, r *pb.AwaitRevocationRequest) (*pb.AwaitRevocationResponse, error) {
	return &pb.AwaitRevocationResponse{}, withGrant(s.Server, r, "nothing revocable", func(ss *session, c *acquisition, h interface{ Revoked() <-chan struct{} }) error {
		select {
		case <-h.Revoked():
			return nil
		case <-c.grant.Done():
			return c.grant.Err()
		case <-ss.ctx.Done():
			return lost(ss)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

func (s service) Acknowledge(ctx context.Context, r *pb.AcknowledgeRequest) (*pb.AcknowledgeResponse, error) {
	return &pb.AcknowledgeResponse{}, withGrant(s.Server, r, "no leadership", func(_ *session, _ *acquisition, l recipes.Leadership) error {
		return l.Acknowledge(ctx, r.GetData())
	})
}

// election opens an election for calls that do not campaign.
func election(t target) (recipes.Election, error) {
	return t.Election(t.path, recipes.ElectionConfig{Dialect: t.dialect})
}

func (s service) Leader(ctx context.Context, r *pb.LeaderRequest) (*pb.LeaderResponse, error) {
	l, err := with(s.Server, r, election, func(e recipes.Election) (recipes.Leader, error) { return e.Leader(ctx) })
	return &pb.LeaderResponse{Leader: wire.ToLeader(l)}, err
}

func (s service) Acknowledged(ctx context.Context, r *pb.AcknowledgedRequest) (*pb.AcknowledgedResponse, error) {
	l, err := with(s.Server, r, election, func(e recipes.Election) (recipes.Leader, error) { return e.Acknowledged(ctx) })
	return &pb.AcknowledgedResponse{Leader: wire.ToLeader(l)}, err
}

func (s service) Observe(r *pb.ObserveRequest, st grpc.ServerStreamingServer[pb.ObserveResponse]) error {
	leaders, err := with(s.Server, r, election, func(e recipes.Election) (<-chan recipes.Leader, error) { return e.Observe(st.Context()) })
	return forward(st, leaders, err, func(l recipes.Leader) *pb.ObserveResponse {
		return &pb.ObserveResponse{Leader: wire.ToLeader(l)}
	})
}

func (s service) Contenders(ctx context.Context, r *pb.ContendersRequest) (*pb.ContendersResponse, error) {
	t, err := s.target(r)
	if err != nil {
		return nil, err
	}
	if t.dialect != "" {
		found, err := t.line(ctx, wire.Strings[recipes.Kind](r.GetKinds()))
		return &pb.ContendersResponse{Contenders: wire.Each(found, wire.ToContender)}, err
	}
	lines, err := t.Client.Contenders(ctx, t.path, wire.Strings[recipes.Kind](r.GetKinds())...)
	return wire.ToLines(lines), err
}

func (s service) Children(ctx context.Context, r *pb.ChildrenRequest) (*pb.ChildrenResponse, error) {
	t, err := s.target(r)
	if err != nil {
		return nil, err
	}
	names, err := t.Client.Children(ctx, t.path)
	return &pb.ChildrenResponse{Names: names}, err
}

// line returns the contenders of one kind in one dialect.
func (t target) line(ctx context.Context, kinds []recipes.Kind) (_ []recipes.Contender, err error) {
	if len(kinds) != 1 {
		return nil, fmt.Errorf("%w: a request with a dialect needs exactly one kind, and has %d", recipes.ErrInvalid, len(kinds))
	}
	var line interface {
		Contenders(context.Context) ([]recipes.Contender, error)
	}
	switch kind := kinds[0]; {
	case kind == recipes.KindLock:
		line, err = t.Lock(t.path, recipes.LockConfig{Dialect: t.dialect})
	case kind == recipes.KindSharedLock:
		line, err = t.SharedLock(t.path, recipes.SharedLockConfig{Dialect: t.dialect})
	case kind == recipes.KindElection:
		e, err := election(t)
		if err != nil {
			return nil, err
		}
		return e.Candidates(ctx)
	case t.dialect == recipes.ZooKeeper: // recipes without dialects, and semaphores, whose number of permits is unknown
		lines, err := t.Client.Contenders(ctx, t.path, kind)
		return lines.Contenders, err
	case kind == recipes.KindSemaphore:
		line, err = t.Semaphore(t.path, recipes.SemaphoreConfig{Permits: 1, Dialect: t.dialect})
	default:
		err = fmt.Errorf("%w: the kind %q has no dialects", recipes.ErrInvalid, kind)
	}
	if err != nil {
		return nil, err
	}
	return line.Contenders(ctx)
}
