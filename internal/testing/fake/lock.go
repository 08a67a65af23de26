package fake

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// point is what a lock and an election have in common.
type point struct {
	session  *Session
	path     string
	kind     recipes.Kind
	strategy recipes.Strategy
	joined   func(recipes.Place)
}

func (p point) Path() string     { return p.path }
func (p point) SessionID() int64 { return p.session.id }

// enter joins the wait queue and waits for the grant. With try it does not wait.
func (p point) enter(ctx context.Context, data []byte, try bool) (*hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := p.session.w
	c, position, err := w.join(p, data)
	if err != nil {
		return nil, err
	}
	if p.joined != nil {
		p.joined(recipes.Place{Znode: c.Znode, Position: position})
	}
	if try && position > 0 {
		return nil, w.giveUp(c, recipes.ErrContended)
	}
	select {
	case <-c.granted:
		return &hold{w, c}, nil
	case <-c.gone:
		return nil, w.giveUp(c, nil)
	case <-ctx.Done():
		return nil, w.giveUp(c, fmt.Errorf("acquire: %w", ctx.Err()))
	}
}

// giveUp removes a waiting contender and returns reason. If the contender was removed before,
// giveUp returns why: the loss of its session, or the reason of the removal.
func (w *World) giveUp(c *contender, reason error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch lost := c.owner.Err(); {
	case c.removed == nil:
		w.leave(recipes.ErrReleased, c)
		return reason
	case lost != nil:
		return lost
	}
	return fmt.Errorf("waiting: %w", c.removed)
}

type lock struct {
	point
	data []byte
}

func (l lock) Acquire(ctx context.Context) (recipes.Hold, error) { return l.acquire(ctx, false) }

func (l lock) TryAcquire(ctx context.Context) (recipes.Hold, error) { return l.acquire(ctx, true) }

func (l lock) acquire(ctx context.Context, try bool) (recipes.Hold, error) {
	h, err := l.enter(ctx, l.data, try)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (l lock) Contenders(context.Context) ([]recipes.Contender, error) {
	return l.session.w.Line(l.path), l.session.Err()
}

// hold is both a hold and a leadership.
type hold struct {
	w *World
	c *contender
}

func (h *hold) Token() recipes.Token  { return h.c.Token }
func (h *hold) Znode() string         { return h.c.Znode }
func (h *hold) Done() <-chan struct{} { return h.c.gone }

func (h *hold) Err() error {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.c.removed
}

// ValidUntil is a session timeout from now.
func (h *hold) ValidUntil() time.Time {
	if h.Err() != nil {
		return time.Time{}
	}
	return time.Now().Add(h.c.owner.Timeout())
}

func (h *hold) Release(context.Context) error {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.w.leave(recipes.ErrReleased, h.c)
	if h.c.removed == recipes.ErrReleased {
		return nil
	}
	return h.c.removed
}

// Write supports all operations. It keeps no versions: an operation with a positive one is
// ErrBadVersion.
func (h *hold) Write(_ context.Context, ops ...recipes.Op) error {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.c.removed != nil {
		return h.c.removed
	}
	for i, op := range ops {
		_, exists := w.data[op.Path]
		var err error
		switch {
		case op.Kind() == "held":
			for _, other := range op.Grants() {
				err = cmp.Or(err, other.(*hold).c.removed)
			}
		case op.Kind() == "create" && exists:
			err = recipes.ErrNodeExists
		case op.Kind() != "create" && !exists:
			err = recipes.ErrNoNode
		case op.Version > 0:
			err = recipes.ErrBadVersion
		}
		if err != nil {
			return &recipes.WriteError{Index: i, Op: op, Err: fmt.Errorf("fake: %w", err)}
		}
	}
	if w.data == nil {
		w.data = make(map[string][]byte)
	}
	for _, op := range ops {
		switch op.Kind() {
		case "held":
		case "delete", "delete key":
			delete(w.data, op.Path)
		default:
			w.data[op.Path] = op.Data
		}
	}
	return nil
}

// Acquiring is a session whose locks are acquired by Acquire. It receives the lock of Client.
type Acquiring struct {
	recipes.Client
	Acquire func(context.Context, recipes.Lock) (recipes.Hold, error)
}

func (s Acquiring) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	l, err := s.Client.Lock(path, cfg)
	return acquiringLock{l, s}, err
}

type acquiringLock struct {
	recipes.Lock
	session Acquiring
}

func (l acquiringLock) Acquire(ctx context.Context) (recipes.Hold, error) {
	return l.session.Acquire(ctx, l.Lock)
}

// election has only Campaign and Observe; the other methods panic.
type election struct {
	recipes.Election
	point point
}

func (e election) Campaign(ctx context.Context, proposal []byte) (recipes.Leadership, error) {
	h, err := e.point.enter(ctx, proposal, false)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Observe delivers once that there is no leader.
func (e election) Observe(ctx context.Context) (<-chan recipes.Leader, error) {
	out := make(chan recipes.Leader, 1)
	out <- recipes.Leader{}
	go func() { // until ctx or the session ends
		defer close(out)
		select {
		case <-ctx.Done():
		case <-e.point.session.lost:
		}
	}()
	return out, e.point.session.Err()
}

func (h *hold) Resign(ctx context.Context) error { return h.Release(ctx) }

func (h *hold) Acknowledge(context.Context, []byte) error { return h.Err() }
