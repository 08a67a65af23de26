package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type sharedLock struct {
	s    *session
	path string
	cfg  recipes.SharedLockConfig
}

func (s *session) SharedLock(path string, cfg recipes.SharedLockConfig) (recipes.SharedLock, error) {
	strategy, err := check(path, cfg.Strategy)
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("shared lock %s: %w", path, err)
	}
	cfg.Strategy = strategy
	return &sharedLock{s: s, path: path, cfg: cfg}, nil
}

func (l *sharedLock) Path() string { return l.path }

func (l *sharedLock) AcquireRead(ctx context.Context) (recipes.SharedHold, error) {
	return l.acquire(ctx, recipes.Reading, false)
}

func (l *sharedLock) AcquireWrite(ctx context.Context) (recipes.SharedHold, error) {
	return l.acquire(ctx, recipes.Writing, false)
}

func (l *sharedLock) TryRead(ctx context.Context) (recipes.SharedHold, error) {
	return l.acquire(ctx, recipes.Reading, true)
}

func (l *sharedLock) TryWrite(ctx context.Context) (recipes.SharedHold, error) {
	return l.acquire(ctx, recipes.Writing, true)
}

func (l *sharedLock) acquire(ctx context.Context, mode recipes.Mode, try bool) (recipes.SharedHold, error) {
	g, err := l.s.contend(ctx, "shared-lock", "shared lock "+l.path, l.cfg.Joined, func(ctx context.Context, id string) (answer, error) {
		return l.s.sharedLocks.AcquireShared(ctx, &pb.AcquireSharedRequest{
			Session: l.s.handle, RequestId: id,
			Path: l.path, Strategy: string(l.cfg.Strategy), Data: l.cfg.Data,
			Try: try, Announce: l.cfg.Joined != nil,
			Mode: wire.ToMode(mode), Revocable: l.cfg.Revocable, Grace: wire.ToDuration(l.cfg.Grace),
		})
	})
	if err != nil {
		return nil, err
	}
	return &sharedHold{hold: hold{g}, request: newRequest(g), writer: mode == recipes.Writing}, nil
}

func (l *sharedLock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return l.s.line(ctx, l.path, recipes.KindSharedLock)
}

func (l *sharedLock) Revoke(ctx context.Context, znode string) error {
	return l.revoke(ctx, znode, false)
}

func (l *sharedLock) RevokeForced(ctx context.Context, znode string) error {
	return l.revoke(ctx, znode, true)
}

func (l *sharedLock) revoke(ctx context.Context, znode string, force bool) error {
	return l.s.call(ctx, "revoke "+znode, func(ctx context.Context) error {
		_, err := l.s.sharedLocks.Revoke(ctx, &pb.RevokeRequest{
			Session: l.s.handle, Path: l.path, Znode: znode, Force: force,
		})
		return err
	})
}

type sharedHold struct {
	hold
	*request
	writer     bool // was granted as one
	downgraded atomic.Bool
}

func (h *sharedHold) Mode() recipes.Mode {
	if h.writer && !h.downgraded.Load() {
		return recipes.Writing
	}
	return recipes.Reading
}

func (h *sharedHold) Downgrade(ctx context.Context) error {
	what := "downgrade " + h.znode
	if !h.writer {
		return fmt.Errorf("%s: %w: it is a read lock", what, recipes.ErrInvalid)
	}
	h.downgraded.Store(true)
	if err := h.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err := h.s.call(ctx, what, func(ctx context.Context) error {
		_, err := h.s.sharedLocks.Downgrade(ctx, &pb.DowngradeRequest{Session: h.s.handle, RequestId: h.id})
		return err
	})
	h.judge(err)
	return notHeld(err)
}

// request is somebody's request that a grant be given back, once it comes.
type request struct {
	g       *grant
	once    sync.Once
	revoked chan struct{}
}

func newRequest(g *grant) *request { return &request{g: g, revoked: make(chan struct{})} }

// Revoked has the plugin told, from the first call on, to answer when the
// request comes. The wait ends with the grant.
func (r *request) Revoked() <-chan struct{} {
	r.once.Do(func() { r.g.s.spawn(r.await) })
	return r.revoked
}

func (r *request) await() {
	s := r.g.s
	wait, cancel := context.WithCancel(s.over)
	defer cancel()
	go func() { // ends with this call at the latest
		select {
		case <-r.g.lost:
			cancel()
		case <-wait.Done():
		}
	}()
	for {
		_, err := s.Client.sharedLocks.AwaitRevocation(wait, &pb.AwaitRevocationRequest{Session: s.handle, RequestId: r.g.id})
		if err == nil {
			close(r.revoked)
			return
		}
		if e, said := wire.Error(err); said {
			r.g.judge(e)
			return
		}
		pause := time.NewTimer(retryPause) // gRPC failed: ask again
		select {
		case <-wait.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}
