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
			return endReason(ss)
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
	values := func(e recipes.Election) (<-chan recipes.Leader, error) { return e.Observe(st.Context()) }
	return watch(s.Server, r, st, election, values, func(l recipes.Leader) *pb.ObserveResponse {
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
