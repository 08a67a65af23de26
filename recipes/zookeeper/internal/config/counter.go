package config

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

type counter struct {
	znode.Recipe
	number *number
}

func (cs Configurations) Counter(path string, cfg recipes.CounterConfig) (recipes.Counter, error) {
	return session.InDialect(cs.Session, path, cfg.Dialect, func() (recipes.Counter, error) { return openCounter(cs.Session, path, cfg) })
}

func openCounter(s *session.Session, path string, cfg recipes.CounterConfig) (recipes.Counter, error) {
	dialect, err := cfg.Dialect.Normalize()
	r, err := znode.New(s, "counter", path, znode.NotRoot(path, "the root cannot be written"), err)
	if err != nil {
		return nil, err
	}
	return &counter{r, &number{session: s, path: path, receipts: path, binary: dialect == recipes.Curator}}, nil
}

func (c *counter) Get(ctx context.Context) (int64, error) {
	n, _, _, err := c.number.read(ctx)
	return n, c.Failed(err)
}

func (c *counter) Add(ctx context.Context, delta int64) (int64, error) {
	sum, err := c.number.change(ctx, func(n int64, _ *session.Txn) (int64, error) {
		sum := n + delta
		if (sum > n) != (delta > 0) {
			return 0, fmt.Errorf("%w: %d and %d", recipes.ErrOverflow, n, delta)
		}
		return sum, nil
	})
	return sum, c.Failed(err)
}

// number is a znode whose data is a number. It changes by compare-and-set.
type number struct {
	session  *session.Session
	path     string
	receipts string // the parent of the receipts
	initial  int64  // the value while the znode does not exist
	binary   bool   // in Curator's form, not decimal
}

// read reads the number and its version. A znode without data has the same value as a znode
// that does not exist. In the decimal form, white space counts as no data.
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

// change replaces the number, once, by the result of next. next may add operations to the
// transaction, and is called again if another client was faster.
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
		return n.tryNext(ctx, next) // another client may have created the znode with a number
	}
	t.Set(n.path, n.encode(value), version)
	_, err = n.session.CommitBelow(ctx, n.receipts, n.session.Provide, t)
	switch {
	case errors.Is(err, session.ErrNoReceipt):
		return n.tryNext(ctx, next)
	case outrun(err):
		return 0, znode.ErrReadAgain
	}
	return value, err
}

// make creates the znode without data, so it does not matter which session creates it, or how
// often. It also creates the parent of the receipts, if that is another znode. Both are
// persistent: the server could delete a container while a receipt is needed.
func (n *number) make(ctx context.Context) error {
	if n.receipts != n.path {
		if err := n.session.Provide(ctx, n.receipts); err != nil {
			return err
		}
	}
	return n.session.Provide(ctx, n.path)
}

const (
	firstBackOff = 2 * time.Millisecond
	lastBackOff  = 256 * time.Millisecond
)

// backOff waits before the next attempt, after an attempt has failed because of another
// client's change. It does not poll: only a failed attempt leads to a wait.
func backOff(ctx context.Context, s *session.Session, failures int) error {
	limit := min(lastBackOff, firstBackOff<<min(failures-1, 10))
	over := make(chan struct{})
	timer := time.AfterFunc(s.RandomBelow(limit), func() { close(over) })
	defer timer.Stop()
	return s.Wait(ctx, "waiting to try again", over)
}

// curatorSize is the size of the data of Curator's DistributedAtomicLong: a number of 64
// bits, big endian. This was read in the sources of Curator 5.4.0. kazoo's Counter stores
// decimal text, as the default dialect does.
const curatorSize = 8

func (n *number) encode(value int64) []byte {
	if n.binary {
		return binary.BigEndian.AppendUint64(nil, uint64(value))
	}
	return strconv.AppendInt(nil, value, 10)
}

// decode reads data that is not empty. It refuses data in the form of the other dialect:
// eight decimal digits, read as Curator's form, would be a number near 2^61. So it also
// refuses a number of Curator whose eight bytes are all digits.
func (n *number) decode(data []byte) (int64, error) {
	value, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	switch decimal := err == nil; {
	case n.binary && decimal:
		return 0, n.session.Refuse(n.path, recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Counter", Znode: n.path})
	case n.binary && len(data) == curatorSize:
		return int64(binary.BigEndian.Uint64(data)), nil
	case n.binary:
		return 0, fmt.Errorf("%w: the data of %s are %d bytes, not the 8 of Curator's DistributedAtomicLong", recipes.ErrInvalid, n.path, len(data))
	case decimal:
		return value, nil
	case len(data) == curatorSize && (data[0] == 0 || data[0] == 0xff): // a number of less than 56 bits
		return 0, n.session.Refuse(n.path, recipes.ForeignError{Dialect: recipes.Curator, Recipe: "DistributedAtomicLong", Znode: n.path})
	}
	return 0, fmt.Errorf("%w: the data of %s are %q, not a number of 64 bits", recipes.ErrInvalid, n.path, znode.Excerpt(string(data)))
}

const (
	remainingName = "remaining"
	openName      = "open"
)

type latch struct {
	znode.Recipe
	remaining *number
}

func (cs Configurations) Latch(path string, cfg recipes.LatchConfig) (recipes.Latch, error) {
	r, err := znode.New(cs.Session, "latch", path, cfg.Validate())
	if err != nil {
		return nil, err
	}
	return &latch{r, &number{session: cs.Session, path: r.Child(remainingName), receipts: path, initial: cfg.Count}}, nil
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

// errOpen means that the count is 0 already.
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
