package config

import (
	"context"
	"errors"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

const (
	remainingName = "remaining"
	openName      = "open"
)

type latch struct {
	path      string
	remaining *number
}

// NewLatch returns the latch at path.
func NewLatch(s *session.Session, path string, cfg recipes.LatchConfig) (recipes.Latch, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("latch: %w", err)
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("latch %s: %w", path, err)
	}
	return &latch{path: path, remaining: &number{
		session: s, path: gopath.Join(path, remainingName), receipts: path, initial: cfg.Count,
	}}, nil
}

func (l *latch) Path() string { return l.path }

func (l *latch) Count(ctx context.Context) (int64, error) {
	n, _, _, err := l.remaining.read(ctx)
	return n, l.failed(err)
}

// CountDown opens the latch in the transaction that counts to 0. It leaves an open
// latch as it is.
func (l *latch) CountDown(ctx context.Context) (int64, error) {
	n, err := l.remaining.change(ctx, func(n int64, t *session.Txn) (int64, error) {
		if n <= 0 {
			return 0, errOpen
		}
		if n > 1 {
			return n - 1, nil
		}
		path := gopath.Join(l.path, openName)
		_, err := l.remaining.session.Stat(ctx, path)
		if errors.Is(err, recipes.ErrNoNode) {
			t.Create(path, nil, false)
			err = nil
		} // else another client has opened it
		return 0, err
	})
	if err == errOpen {
		return 0, nil
	}
	return n, l.failed(err)
}

// errOpen says that there is nothing left to count down.
var errOpen = errors.New("open")

// Wait waits until open exists.
func (l *latch) Wait(ctx context.Context) error {
	s := l.remaining.session
	for {
		disconnected, err := s.Connected(ctx)
		if err != nil {
			return l.failed(err)
		}
		open, changed, err := s.ExistsW(ctx, gopath.Join(l.path, openName))
		if err != nil || open {
			return l.failed(err)
		}
		if err := s.Wait(ctx, "waiting", changed.Fired(), disconnected); err != nil {
			return l.failed(err)
		}
	}
}

func (l *latch) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("latch %s: %w", l.path, err)
}
