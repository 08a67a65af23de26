package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

type configuration struct{ znode.Recipe }

// Configurations opens the recipes of this package in one session.
type Configurations struct{ Session *session.Session }

func (cs Configurations) Configuration(path string) (recipes.Configuration, error) {
	r, err := znode.New(cs.Session, "configuration", path, znode.NotRoot(path, "the root holds ZooKeeper's own nodes"))
	if err != nil {
		return nil, err
	}
	return &configuration{r}, nil
}

func (c *configuration) failed(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("key %q of configuration %s: %w", key, c.Path(), err)
}

func (c *configuration) Get(ctx context.Context, key string) (recipes.Entry, error) {
	if err := recipes.ValidateKey(key); err != nil {
		return recipes.Entry{}, c.failed(key, err)
	}
	node, err := c.Session.Get(ctx, c.Child(key))
	if err != nil {
		return recipes.Entry{}, c.failed(key, err)
	}
	return entry(key, node), nil
}

func entry(key string, node session.Node) recipes.Entry {
	return recipes.Entry{
		Key:      key,
		Value:    node.Data,
		Revision: recipes.Revision(node.Stat.Mzxid),
		Modified: time.UnixMilli(node.Stat.Mtime),
		Unset:    len(node.Data) == 0 && node.Stat.Version == 0, // see Set
		Version:  node.Stat.Version,
	}
}

func (c *configuration) Key(op recipes.Op) (recipes.Op, error) {
	key := op.Path
	if err := recipes.ValidateKey(key); err != nil {
		return recipes.Op{}, c.failed(key, err)
	}
	op = op.ForKey(c.Child(key), key)
	return op, c.failed(key, op.Validate())
}

func (c *configuration) Watch(ctx context.Context, key string) (<-chan recipes.Entry, error) {
	if err := recipes.ValidateKey(key); err != nil {
		return nil, c.failed(key, err)
	}
	path := c.Child(key)
	out, err := znode.Observe(ctx, c.Session, znode.Selection{Root: path, Scope: znode.Single}, "key", func(nodes znode.Nodes) recipes.Entry {
		if node, exists := nodes[path]; exists {
			return entry(key, node)
		}
		return recipes.Entry{Key: key}
	})
	return out, c.failed(key, err)
}

func (c *configuration) Snapshot(ctx context.Context) ([]recipes.Entry, error) {
	nodes, err := znode.Read(ctx, c.Session, c.tree())
	if err != nil {
		return nil, c.Failed(err)
	}
	return c.entries(nodes), nil
}

func (c *configuration) WatchTree(ctx context.Context) (<-chan []recipes.Entry, error) {
	out, err := znode.Observe(ctx, c.Session, c.tree(), "configuration", c.entries)
	return out, c.Failed(err)
}

func (c *configuration) tree() znode.Selection {
	return znode.Selection{Root: c.Path(), Scope: znode.Tree, Named: true}
}

func (c *configuration) entries(nodes znode.Nodes) []recipes.Entry {
	out := make([]recipes.Entry, 0, len(nodes))
	for path, node := range nodes {
		key := strings.TrimPrefix(strings.TrimPrefix(path, c.Path()), "/")
		out = append(out, entry(key, node))
	}
	slices.SortFunc(out, func(a, b recipes.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

func (c *configuration) Set(ctx context.Context, key string, value []byte, expected recipes.Revision) (recipes.Revision, error) {
	err := cmp.Or(recipes.ValidateKey(key), expected.Validate(), ctx.Err(), c.Session.Fits(c.Child(key), value))
	if err != nil {
		return 0, c.failed(key, err)
	}
	zxid, err := c.change(ctx, key, expected, change{
		existing: func(t *session.Txn, now znode.Counted) {
			switch {
			case expected == recipes.AnyRevision:
				t.Set(c.Child(key), value, recipes.AnyVersion)
			case key == "":
				t.Set(c.Path(), value, now.Stat.Version) // see change
			default:
				now.Set(t, value)
			}
		},
		missing: func(t *session.Txn) {
			t.Create(c.Child(key), value, false)
			if len(value) == 0 { // a parent is empty too, but at version 0
				t.Set(c.Child(key), value, 0)
			}
		},
	})
	if err == nil && zxid == 0 {
		err = c.Session.Because(ctx, fmt.Errorf("%w: it is set, but its revision could not be read", recipes.ErrUnknownOutcome))
	}
	return recipes.Revision(zxid), c.failed(key, err)
}

func (c *configuration) Delete(ctx context.Context, key string, expected recipes.Revision) error {
	err := cmp.Or(recipes.ValidateKey(key), expected.Validate(), ctx.Err())
	switch {
	case err != nil:
	case key == "" || expected == recipes.NoRevision:
		err = fmt.Errorf("%w: neither the configuration's own znode nor a key that does not exist can be deleted", recipes.ErrInvalid)
	default:
		_, err = c.change(ctx, key, expected, change{
			existing: func(t *session.Txn, now znode.Counted) { now.Delete(t) },
			deletes:  true,
		})
	}
	return c.failed(key, err)
}

// change has the operations for a key that exists, and for a key that does not. If missing
// is nil, the change of a missing key fails with ErrNoNode.
type change struct {
	existing func(t *session.Txn, now znode.Counted)
	missing  func(t *session.Txn)
	deletes  bool
}

// change reads the key's record, compares its revision, and commits the change once, if the
// record is still the same. After an outage, or after another client's change, it reads again
// and may find another revision. With AnyRevision it compares nothing.
//
// The configuration's own znode has no count: while this session has a receipt below it, it
// cannot be replaced (session.CommitRead).
func (c *configuration) change(ctx context.Context, key string, expected recipes.Revision, ch change) (zxid int64, err error) {
	purpose := znode.Purpose{Compare: key != "" && expected != recipes.AnyRevision, Delete: ch.deletes}
	for {
		var now znode.Counted
		outcome, err := c.Session.CommitRead(ctx, c.Path(), c.Session.Provide, func(ctx context.Context) (t session.Txn, err error) {
			now, err = znode.ReadCounted(ctx, c.Session, c.Child(key), purpose, func() (*session.Stat, error) { return c.find(ctx, key, expected, ch) })
			switch {
			case err != nil:
			case now.Stat != nil:
				ch.existing(&t, now)
			case key == "":
				err = errUnmade
			default:
				if err = c.parents(ctx, gopath.Dir(c.Child(key))); err == nil {
					ch.missing(&t)
				}
			}
			return t, err
		})
		if errors.Is(err, errUnmade) {
			if outcome, err = c.make(ctx, ch.missing); errors.Is(err, recipes.ErrNodeExists) {
				continue
			}
			return outcome.Zxid, err
		}
		if err = now.Done(outcome, err); !errors.Is(err, znode.ErrReadAgain) && !outrun(err) {
			return outcome.Zxid, err
		}
	}
}

// errUnmade means that the configuration's own znode does not exist.
var errUnmade = errors.New("not made")

// find returns the record of a key that the change applies to, or nil for a key that does
// not exist.
func (c *configuration) find(ctx context.Context, key string, expected recipes.Revision, ch change) (*session.Stat, error) {
	stat, err := c.Session.Stat(ctx, c.Child(key))
	switch {
	case err == nil:
		return &stat, compare(&stat, expected)
	case ch.missing != nil && errors.Is(err, recipes.ErrNoNode):
		return nil, compare(nil, expected)
	}
	return nil, err
}

// compare checks that the revision is the expected one. stat is nil for a missing key.
func compare(stat *session.Stat, expected recipes.Revision) error {
	switch {
	case expected == recipes.AnyRevision:
	case expected == recipes.NoRevision && stat != nil:
		return fmt.Errorf("%w: its revision is %d", recipes.ErrNodeExists, stat.Mzxid)
	case expected != recipes.NoRevision && stat == nil:
		return recipes.ErrNoNode
	case expected != recipes.NoRevision && stat.Mzxid != int64(expected):
		return fmt.Errorf("%w: its revision is %d, not %d", recipes.ErrBadVersion, stat.Mzxid, expected)
	}
	return nil
}

// outrun reports whether a change was refused because another client was faster.
func outrun(err error) bool {
	_, refused := errors.AsType[*session.TxnError](err)
	return refused && (errors.Is(err, recipes.ErrBadVersion) || errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrNodeExists))
}

// make commits the creation of the configuration's own znode. The receipt is beside that znode,
// because none can be below it yet.
func (c *configuration) make(ctx context.Context, missing func(*session.Txn)) (session.Outcome, error) {
	var t session.Txn
	missing(&t)
	return c.Session.CommitWithReceipt(ctx, gopath.Dir(c.Path()), c.Session.Ensure, t)
}

// parents creates the missing parents of a key. They are persistent because they may have
// values: the server would delete a container, with its value, after the last key below it
// is deleted.
func (c *configuration) parents(ctx context.Context, path string) error {
	_, err := c.Session.Stat(ctx, path)
	if !errors.Is(err, recipes.ErrNoNode) {
		return err
	}
	if path == c.Path() {
		return c.Session.Provide(ctx, path)
	}
	return c.Session.ProvideIn(ctx, path, c.parents)
}
