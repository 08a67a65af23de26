package zookeeper

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
)

type configuration struct {
	session *session.Session
	path    string
}

func (s zkSession) Configuration(path string) (recipes.Configuration, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if path == "/" {
		return nil, fmt.Errorf("configuration: %w: the root holds ZooKeeper's own nodes", recipes.ErrInvalid)
	}
	return &configuration{session: s.Session, path: path}, nil
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
	}
}

func (c *configuration) Watch(ctx context.Context, key string) (<-chan recipes.Entry, error) {
	if err := recipes.ValidateKey(key); err != nil {
		return nil, c.failed(key, err)
	}
	m := newMirror(c.session, c.full(key), true, true)
	m.flat = true
	out, err := stream(ctx, m, "key", func(m *mirror) recipes.Entry {
		if n := m.nodes[m.root]; n != nil {
			return entry(key, n.node)
		}
		return recipes.Entry{Key: key}
	})
	if err != nil {
		return nil, c.failed(key, err)
	}
	return out, nil
}

func (c *configuration) Snapshot(ctx context.Context) ([]recipes.Entry, error) {
	m := newMirror(c.session, c.path, true, false)
	m.named = true
	if err := m.look(ctx); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", c.path, err)
	}
	return entries(m), nil
}

func (c *configuration) WatchTree(ctx context.Context) (<-chan []recipes.Entry, error) {
	m := newMirror(c.session, c.path, true, true)
	m.named = true
	out, err := stream(ctx, m, "configuration", entries)
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", c.path, err)
	}
	return out, nil
}

func entries(m *mirror) []recipes.Entry {
	out := make([]recipes.Entry, 0, len(m.nodes))
	for path, n := range m.nodes {
		key := strings.TrimPrefix(strings.TrimPrefix(path, m.root), "/")
		out = append(out, entry(key, n.node))
	}
	slices.SortFunc(out, func(a, b recipes.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return out
}
