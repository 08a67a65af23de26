package config

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

const (
	remainingName = "remaining"
	openName      = "open"
)

type latch struct {
	znode.Recipe
	remaining *number
}

// NewLatch returns the latch at path.
func NewLatch(s *session.Session, path string, cfg recipes.LatchConfig) (recipes.Latch, error) {
	r, err := znode.New(s, "latch", path, cfg.Validate())
	if err != nil {
		return nil, err
	}
	return &latch{r, &number{session: s, path: r.Child(remainingName), receipts: path, initial: cfg.Count}}, nil
}

func (l *latch) Count(ctx context.Context) (int64, error) {
	n, _, _, err := l.remaining.read(ctx)
	return n, l.Failed(err)
}

// CountDown opens the latch in the transaction that counts to 0. It does not change an open
// latch.
func (l *latch) CountDown(ctx context.Context) (int64, error) {
	n, err := l.remaining.change(ctx, func(n int64, t *session.Txn) (int64, error) {
		if n <= 0 {
			return 0, errOpen
		}
		if n > 1 {
			return n - 1, nil
		}
		path := l.Child(openName)
		_, err := l.Session.Stat(ctx, path)
		if errors.Is(err, recipes.ErrNoNode) {
			t.Create(path, nil, false)
			err = nil
		} // else another client has opened it
		return 0, err
	})
	if err == errOpen {
		return 0, nil
	}
	return n, l.Failed(err)
}

// errOpen says that the count is 0 already.
var errOpen = errors.New("open")

// Wait waits until open exists.
func (l *latch) Wait(ctx context.Context) error {
	return l.Failed(znode.Await(ctx, l.Session, "waiting", func() ([]<-chan struct{}, error) {
		open, changed, err := l.Session.ExistsW(ctx, l.Child(openName))
		if err != nil || open {
			return nil, err
		}
		return znode.Events(changed), nil
	}))
}
