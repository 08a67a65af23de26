package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var readWriteLockService = pb.NewReadWriteLockServiceClient(link.Router{})

// readWriteLock is a shared lock, with H a recipes.SharedHold, or a priority lock.
type readWriteLock[H any] struct {
	recipe
	kind           recipes.Kind
	reader, writer queued[H]
}

func newReadWriteLock[H any](r recipe, kind recipes.Kind, joined func(recipes.Place), hold func(granted) H, read, write *pb.AcquireRequest) readWriteLock[H] {
	return readWriteLock[H]{
		recipe: r, kind: kind,
		reader: queued[H]{r, string(kind), kind, joined, hold, read},
		writer: queued[H]{r, string(kind), kind, joined, hold, write},
	}
}

func (s *session) SharedLock(path string, cfg recipes.SharedLockConfig) (recipes.SharedLock, error) {
	r, err := s.at("shared lock", path, cfg.Dialect, normalize(&cfg.Strategy), cfg.Validate())
	if err != nil {
		return nil, err
	}
	request := func(mode pb.Mode) *pb.AcquireRequest {
		return &pb.AcquireRequest{Data: cfg.Data, Recipe: &pb.AcquireRequest_SharedLock{SharedLock: &pb.SharedLock{
			Strategy: string(cfg.Strategy), Mode: mode, Revocable: cfg.Revocable, Grace: wire.ToDuration(cfg.Grace),
		}}}
	}
	return newReadWriteLock(r, recipes.KindSharedLock, cfg.Joined, newSharedHold, request(pb.Mode_MODE_READ), request(pb.Mode_MODE_WRITE)), nil
}

func (s *session) PriorityLock(path string, cfg recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	r, err := s.at("priority lock", path, "", normalize(&cfg.Strategy), cfg.Validate())
	if err != nil {
		return nil, err
	}
	request := func(mode pb.Mode) *pb.AcquireRequest {
		return &pb.AcquireRequest{Data: cfg.Data, Recipe: &pb.AcquireRequest_PriorityLock{PriorityLock: &pb.PriorityLock{
			Strategy: string(cfg.Strategy), Mode: mode, Revocable: cfg.Revocable, Grace: wire.ToDuration(cfg.Grace),
			Priority: int32(cfg.Priority), Ask: cfg.Ask,
		}}}
	}
	return newReadWriteLock(r, recipes.KindPriorityLock, cfg.Joined, newPriorityHold, request(pb.Mode_MODE_READ), request(pb.Mode_MODE_WRITE)), nil
}

func (l readWriteLock[H]) AcquireRead(ctx context.Context) (H, error)  { return l.reader.Acquire(ctx) }
func (l readWriteLock[H]) AcquireWrite(ctx context.Context) (H, error) { return l.writer.Acquire(ctx) }
func (l readWriteLock[H]) TryRead(ctx context.Context) (H, error)      { return l.reader.TryAcquire(ctx) }
func (l readWriteLock[H]) TryWrite(ctx context.Context) (H, error)     { return l.writer.TryAcquire(ctx) }

func (l readWriteLock[H]) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return l.line(ctx, l.kind)
}

func (l readWriteLock[H]) Revoke(ctx context.Context, znode string) error {
	return l.revoke(ctx, znode, false)
}

func (l readWriteLock[H]) RevokeForced(ctx context.Context, znode string) error {
	return l.revoke(ctx, znode, true)
}

func (l readWriteLock[H]) revoke(ctx context.Context, znode string, force bool) error {
	_, err := read(ctx, l.about("revoke "+znode), readWriteLockService.Revoke, &pb.RevokeRequest{ // may be repeated
		Session: l.s.Handle(), Path: l.path, Znode: znode, Force: force, Kind: string(l.kind), Dialect: l.dialect,
	}, nothing)
	return err
}

type sharedHold struct {
	hold
	*revocation
	writer     bool // granted as a writer
	downgraded atomic.Bool
}

func newSharedHold(g granted) recipes.SharedHold {
	return &sharedHold{hold: hold{g.Grant}, revocation: newRevocation(g.Grant), writer: g.request.GetSharedLock().GetMode() == pb.Mode_MODE_WRITE}
}

func (h *sharedHold) Mode() recipes.Mode {
	if h.writer && !h.downgraded.Load() {
		return recipes.Writing
	}
	return recipes.Reading
}

func (h *sharedHold) Downgrade(ctx context.Context) error {
	what := "downgrade " + h.Znode()
	if !h.writer {
		return fmt.Errorf("%s: %w: it is a read lock", what, recipes.ErrInvalid)
	}
	h.downgraded.Store(true)
	if err := h.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	_, err := read(ctx, recipe{s: h.Session(), what: what}, readWriteLockService.Downgrade, // may be repeated
		&pb.DowngradeRequest{Session: h.Session().Handle(), RequestId: h.ID()}, nothing)
	h.EndIfNotHeld(err)
	return link.NotHeld(err)
}

type priorityHold struct {
	hold
	*revocation
	mode recipes.Mode
}

func newPriorityHold(g granted) recipes.PriorityHold {
	return &priorityHold{hold: hold{g.Grant}, revocation: newRevocation(g.Grant), mode: wire.Mode(g.request.GetPriorityLock().GetMode())}
}

func (h *priorityHold) Mode() recipes.Mode { return h.mode }

func (h *priorityHold) HandOff(ctx context.Context, successor string) error {
	err := link.WriteAs(ctx, h.Grant, "handoff", readWriteLockService.HandOff,
		&pb.HandOffRequest{Session: h.Session().Handle(), RequestId: h.ID(), Successor: successor})
	if err == nil {
		h.Forget()
		h.Lose(recipes.ErrReleased)
	}
	return err
}

// revocation notifies the holder of a request to release its grant.
type revocation struct {
	g       *link.Grant
	once    sync.Once
	revoked chan struct{}
}

func newRevocation(g *link.Grant) *revocation {
	return &revocation{g: g, revoked: make(chan struct{})}
}

// Revoked starts, on the first call, a call to the plugin that returns when a revocation is
// requested. The wait ends with the grant.
func (r *revocation) Revoked() <-chan struct{} {
	r.once.Do(func() { r.g.Session().Spawn(r.await) })
	return r.revoked
}

func (r *revocation) await() {
	request := &pb.AwaitRevocationRequest{Session: r.g.Session().Handle(), RequestId: r.g.ID()}
	if link.Await(r.g, readWriteLockService.AwaitRevocation, request) == nil {
		close(r.revoked)
	}
}
