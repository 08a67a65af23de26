package config

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

type configuration struct{ znode.Recipe }

func New(s *session.Session, path string) (recipes.Configuration, error) {
	r, err := znode.New(s, "configuration", path, znode.NotRoot(path, "the root holds ZooKeeper's own nodes"))
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
	}
}

func (c *configuration) Key(op recipes.Op) (recipes.Op, error) {
	key := op.Path
	if err := recipes.ValidateKey(key); err != nil {
		return recipes.Op{}, c.failed(key, err)
	}
	op.Path = c.Child(key)
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
