package config

import (
	"cmp"
	"context"
	"fmt"
	gopath "path"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

type configuration struct {
	session *session.Session
	path    string
}

// New returns the configuration at path.
func New(s *session.Session, path string) (recipes.Configuration, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if path == "/" {
		return nil, fmt.Errorf("configuration: %w: the root holds ZooKeeper's own nodes", recipes.ErrInvalid)
	}
	return &configuration{session: s, path: path}, nil
}

func (c *configuration) Path() string { return c.path }

func (c *configuration) failed(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("key %q of configuration %s: %w", key, c.path, err)
}

func (c *configuration) full(key string) string { return gopath.Join(c.path, key) }

func (c *configuration) Get(ctx context.Context, key string) (recipes.Entry, error) {
	if err := recipes.ValidateKey(key); err != nil {
		return recipes.Entry{}, c.failed(key, err)
	}
	node, err := c.session.Get(ctx, c.full(key))
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
	op.Path = c.full(key)
	return op, c.failed(key, op.Validate())
}

func (c *configuration) Watch(ctx context.Context, key string) (<-chan recipes.Entry, error) {
	if err := recipes.ValidateKey(key); err != nil {
		return nil, c.failed(key, err)
	}
	path := c.full(key)
	out, err := znode.Observe(ctx, c.session, znode.Selection{Root: path, Scope: znode.Single}, "key", func(nodes znode.Nodes) recipes.Entry {
		if node, exists := nodes[path]; exists {
			return entry(key, node)
		}
		return recipes.Entry{Key: key}
	})
	if err != nil {
		return nil, c.failed(key, err)
	}
	return out, nil
}

func (c *configuration) Snapshot(ctx context.Context) ([]recipes.Entry, error) {
	nodes, err := znode.Read(ctx, c.session, c.tree())
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", c.path, err)
	}
	return c.entries(nodes), nil
}

func (c *configuration) WatchTree(ctx context.Context) (<-chan []recipes.Entry, error) {
	out, err := znode.Observe(ctx, c.session, c.tree(), "configuration", c.entries)
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", c.path, err)
	}
	return out, nil
}

func (c *configuration) tree() znode.Selection {
	return znode.Selection{Root: c.path, Scope: znode.Tree, Named: true}
}

func (c *configuration) entries(nodes znode.Nodes) []recipes.Entry {
	out := make([]recipes.Entry, 0, len(nodes))
	for path, node := range nodes {
		key := strings.TrimPrefix(strings.TrimPrefix(path, c.path), "/")
		out = append(out, entry(key, node))
	}
	slices.SortFunc(out, func(a, b recipes.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return out
}
