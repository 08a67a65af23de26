package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

type counter struct{ number *number }

// NewCounter returns the counter at path.
func NewCounter(s *session.Session, path string, cfg recipes.CounterConfig) (recipes.Counter, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("counter: %w", err)
	}
	if path == "/" {
		return nil, fmt.Errorf("counter: %w: the root cannot be written", recipes.ErrInvalid)
	}
	dialect, err := cfg.Dialect.Normalize()
	if err != nil {
		return nil, fmt.Errorf("counter %s: %w", path, err)
	}
	return &counter{&number{session: s, path: path, receipts: path, binary: dialect == recipes.Curator}}, nil
}

func (c *counter) Path() string { return c.number.path }

func (c *counter) Get(ctx context.Context) (int64, error) {
	n, _, _, err := c.number.read(ctx)
	return n, c.failed(err)
}

func (c *counter) Add(ctx context.Context, delta int64) (int64, error) {
	sum, err := c.number.change(ctx, func(n int64, _ *session.Txn) (int64, error) {
		sum := n + delta
		if (sum > n) != (delta > 0) && delta != 0 {
			return 0, fmt.Errorf("%w: %d and %d", recipes.ErrOverflow, n, delta)
		}
		return sum, nil
	})
	return sum, c.failed(err)
}

func (c *counter) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("counter %s: %w", c.number.path, err)
}

// number is a znode whose data is a number, which compare-and-set changes.
type number struct {
	session  *session.Session
	path     string
	receipts string // the parent of receipts
	initial  int64  // the value while the znode does not exist
	binary   bool   // the data are Curator's, not decimal
}

// read reads the number and its version. Without data the znode has the same value as
// one that does not exist.
func (n *number) read(ctx context.Context) (value int64, version int32, exists bool, err error) {
	node, err := n.session.Get(ctx, n.path)
	if errors.Is(err, recipes.ErrNoNode) {
		return n.initial, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, err
	}
	if len(node.Data) == 0 || !n.binary && len(bytes.TrimSpace(node.Data)) == 0 {
		return n.initial, node.Stat.Version, true, nil
	}
	value, err = n.decode(node.Data)
	return value, node.Stat.Version, true, err
}

// change replaces the number by what next returns, once. next may add operations to
// the transaction.
func (n *number) change(ctx context.Context, next func(n int64, t *session.Txn) (int64, error)) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	for failures := 0; ; failures++ {
		if failures > 0 {
			if err := backOff(ctx, n.session, failures); err != nil {
				return 0, err
			}
		}
		value, err := n.tryNext(ctx, next)
		if !errors.Is(err, znode.ErrReadAgain) {
			return value, err
		}
	}
}

func (n *number) tryNext(ctx context.Context, next func(n int64, t *session.Txn) (int64, error)) (int64, error) {
	old, version, exists, err := n.read(ctx)
	if err != nil {
		return 0, err
	}
	var t session.Txn
	value, err := next(old, &t)
	if err != nil {
		return 0, err
	}
	if !exists {
		if err := n.make(ctx); err != nil {
			return 0, err
		}
		return n.tryNext(ctx, next) // another client may have created it, with a number in it
	}
	t.Set(n.path, n.encode(value), version)
	_, err = n.session.CommitWithReceipt(ctx, n.receipts, n.session.Provide, t)
	if outrun(err) {
		return 0, znode.ErrReadAgain
	}
	return value, err
}

// make creates the znode without data, so that it does not matter which of our sessions
// creates it, or how often. It is persistent. So is its parent if receipts lie beside it: a
// container could be deleted under them.
func (n *number) make(ctx context.Context) error {
	for _, path := range []string{gopath.Dir(n.path), n.path} {
		if path != n.path && path != n.receipts {
			continue
		}
		if err := n.session.Provide(ctx, path); err != nil {
			return err
		}
	}
	return nil
}
