package fake

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

type lock struct {
	s    *Session
	path string
	cfg  recipes.LockConfig
}

func (l *lock) Path() string { return l.path }

func (l *lock) Acquire(ctx context.Context) (recipes.Hold, error) {
	return l.contend(ctx, "lock-", l.cfg.Data, false)
}

func (l *lock) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return l.contend(ctx, "lock-", l.cfg.Data, true)
}

func (l *lock) Contenders(context.Context) ([]recipes.Contender, error) {
	return l.s.w.Line(l.path), l.s.Err()
}

func (l *lock) contend(ctx context.Context, marker string, data []byte, try bool) (*hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := l.s.w
	w.mu.Lock()
	if err := l.s.Err(); err != nil {
		w.mu.Unlock()
		return nil, err
	}
	n := w.join(l.s, l.path, marker, data)
	place := recipes.Place{Znode: n.Znode, Position: w.ahead(n)}
	w.mu.Unlock()
	if l.cfg.Joined != nil {
		l.cfg.Joined(place)
	}
	return l.wait(ctx, n, try)
}

func (l *lock) wait(ctx context.Context, n *node, try bool) (*hold, error) {
	w := l.s.w
	for {
		w.mu.Lock()
		changed, ahead, removed := w.changed, w.ahead(n), n.removed
		switch {
		case removed != nil:
			w.mu.Unlock()
			if err := l.s.Err(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("waiting: %w", removed)
		case ahead == 0:
			w.mu.Unlock()
			return &hold{s: l.s, n: n, lost: n.gone}, nil
		case try:
			w.remove(n, recipes.ErrReleased)
			w.mu.Unlock()
			return nil, recipes.ErrContended
		}
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			w.mu.Lock()
			w.remove(n, recipes.ErrReleased)
			w.mu.Unlock()
			return nil, fmt.Errorf("acquire: %w", ctx.Err())
		}
	}
}

// hold is a hold, and a leadership.
type hold struct {
	s    *Session
	n    *node
	lost <-chan struct{}
}

func (h *hold) Token() recipes.Token  { return h.n.Token }
func (h *hold) Znode() string         { return h.n.Znode }
func (h *hold) Done() <-chan struct{} { return h.lost }

func (h *hold) Err() error {
	h.s.w.mu.Lock()
	defer h.s.w.mu.Unlock()
	return h.n.removed
}

func (h *hold) Release(context.Context) error {
	h.s.w.mu.Lock()
	defer h.s.w.mu.Unlock()
	switch h.n.removed {
	case nil, recipes.ErrReleased:
		h.s.w.remove(h.n, recipes.ErrReleased)
		return nil
	}
	return h.n.removed
}

func (h *hold) Resign(ctx context.Context) error { return h.Release(ctx) }

func (h *hold) Acknowledge(_ context.Context, data []byte) error {
	h.s.w.mu.Lock()
	defer h.s.w.mu.Unlock()
	if h.n.removed != nil {
		return h.n.removed
	}
	h.n.acked, h.n.ack = true, data
	h.s.w.change()
	return nil
}

// Write knows creations, sets and deletions, and no versions but AnyVersion.
func (h *hold) Write(_ context.Context, ops ...recipes.Op) error {
	w := h.s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.n.removed != nil {
		return h.n.removed
	}
	for i, op := range ops {
		_, exists := w.data[op.Path]
		var err error
		switch {
		case op.Kind == recipes.OpCreate && exists:
			err = recipes.ErrNodeExists
		case op.Kind != recipes.OpCreate && !exists:
			err = recipes.ErrNoNode
		case op.Version > 0:
			err = recipes.ErrBadVersion
		}
		if err != nil {
			return &recipes.WriteError{Index: i, Op: op, Err: fmt.Errorf("fake: %w", err)}
		}
	}
	for _, op := range ops {
		if op.Kind == recipes.OpDelete {
			delete(w.data, op.Path)
		} else {
			w.data[op.Path] = op.Data
		}
	}
	return nil
}
