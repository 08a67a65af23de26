package znode

import (
	"context"
	"errors"
	gopath "path"
	"reflect"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Nodes holds znodes that were read, by path.
type Nodes map[string]session.Node

// Selection says which znodes to read.
type Selection struct {
	Root  string
	Scope Scope
	// Named omits protected znodes, such as receipts: the recipe has named them, not the
	// application.
	Named bool
	// Partial includes a child whose data cannot be read, because of its ACL or its size, without
	// the data. Otherwise one such znode fails the whole read. Such a child cannot be watched, so
	// each update reads it again, and only the list of children shows its deletion.
	Partial bool
}

// Scope says which znodes of a Selection are read.
type Scope int

const (
	Children Scope = iota // the children of Root, without Root
	Tree                  // Root and everything below it
	Single                // Root alone
)

// reads reports whether the data of a znode are part of the selection, and lists whether the names
// of its children are needed.
func (s Selection) reads(path string) bool { return s.Scope != Children || path != s.Root }

func (s Selection) lists(path string) bool {
	return s.Scope == Tree || s.Scope == Children && path == s.Root
}

// below returns the paths of the children that are selected.
func (s Selection) below(path string, names []string) []string {
	paths := make([]string, 0, len(names))
	for _, name := range names {
		if !s.Named || !strings.HasPrefix(name, "_c_") {
			paths = append(paths, gopath.Join(path, name))
		}
	}
	return paths
}

// Read reads the selected znodes once, level by level. If the root does not exist, the result is
// empty.
func Read(ctx context.Context, s *session.Session, selection Selection) (Nodes, error) {
	nodes := Nodes{}
	for level := []string{selection.Root}; len(level) > 0; {
		if selection.reads(level[0]) {
			exist, err := readLevel(ctx, s, selection, level, nodes)
			if err != nil {
				return nil, err
			}
			level = exist
		}
		if len(level) == 0 || !selection.lists(level[0]) {
			break
		}
		listings, err := s.ChildrenAll(ctx, level)
		if err != nil {
			return nil, err
		}
		var next []string
		for i, l := range listings {
			switch {
			case l.Err == nil:
				next = append(next, selection.below(level[i], l.Value)...)
			case errors.Is(l.Err, recipes.ErrNoNode): // deleted since it was read
				delete(nodes, level[i])
			default:
				return nil, l.Err
			}
		}
		level = next
	}
	return nodes, nil
}

// readLevel adds the znodes of these paths that exist to nodes, and returns their paths.
func readLevel(ctx context.Context, s *session.Session, selection Selection, paths []string, nodes Nodes) (exist []string, err error) {
	read, err := s.GetAll(ctx, paths)
	if err != nil {
		return nil, err
	}
	var hidden []string
	for i, r := range read {
		switch {
		case r.Err == nil:
			nodes[paths[i]] = r.Value
			exist = append(exist, paths[i])
		case selection.Partial && unreadable(r.Err):
			hidden = append(hidden, paths[i])
		case !errors.Is(r.Err, recipes.ErrNoNode):
			return nil, r.Err
		}
	}
	stats, err := s.StatAll(ctx, hidden)
	if err != nil {
		return nil, err
	}
	for i, r := range stats {
		switch {
		case r.Err == nil || errors.Is(r.Err, recipes.ErrAccessDenied): // since ZooKeeper 3.9 the permission to read covers the record
			nodes[hidden[i]] = session.Node{Unreadable: true, Stat: r.Value}
			exist = append(exist, hidden[i])
		case !errors.Is(r.Err, recipes.ErrNoNode):
			return nil, r.Err
		}
	}
	return exist, nil
}

// unreadable reports whether a znode exists whose data the session cannot read.
func unreadable(err error) bool {
	return errors.Is(err, recipes.ErrAccessDenied) || errors.Is(err, recipes.ErrTooLarge)
}

// parallelReads limits how many watched reads a mirror sends at the same time.
const parallelReads = 16

// mirror holds the selected znodes, and watches them. An update reads only what a watch has reported, or
// everything after a lost connection. A mirror belongs to one goroutine.
//
// A persistent recursive watch would replace one or two watches per znode, but neither
// go-zookeeper nor servers before 3.6 support it.
type mirror struct {
	Selection
	session *session.Session

	nodes        map[string]*mirrored
	disconnected <-chan struct{}
	wake         chan struct{} // receives when a watch has fired
	watching     sync.WaitGroup
}

type mirrored struct {
	node           session.Node
	names          []string
	data, children *session.Watch // nil: not read yet
}

// selected returns the selected znodes. For the scope Children the root was read too, for its
// list of children.
func (m *mirror) selected() Nodes {
	nodes := make(Nodes, len(m.nodes))
	for path, n := range m.nodes {
		if m.Scope != Children || path != m.Root {
			nodes[path] = n.node
		}
	}
	return nodes
}

// update brings the mirror up to date. If the root does not exist, the mirror is empty.
func (m *mirror) update(ctx context.Context) error {
	for {
		disconnected, err := m.session.Connected(ctx)
		if err != nil {
			return err
		}
		if disconnected != m.disconnected {
			m.nodes, m.disconnected = nil, disconnected
		}
		if err := m.walk(ctx); !errors.Is(err, ErrReadAgain) {
			return err
		}
	}
}

func (m *mirror) walk(ctx context.Context) error {
	found := make(map[string]*mirrored, len(m.nodes))
	for level := []string{m.Root}; len(level) > 0; {
		read := make([]*mirrored, len(level))
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(parallelReads)
		for i, path := range level {
			old := m.nodes[path]
			g.Go(func() (err error) {
				read[i], err = m.read(gctx, ctx, path, old)
				return err
			})
		}
		err := g.Wait()
		var next []string
		for i, path := range level {
			if read[i] == nil {
				continue // the znode was deleted after the listing, or could not be read
			}
			found[path] = read[i]
			next = append(next, m.below(path, read[i].names)...)
		}
		if err != nil {
			m.retain(found)
			return err
		}
		level = next
	}
	m.nodes = found
	return nil
}

// retain keeps what an update has read before it failed, and the older state of the rest. If
// the server throttles, the caller updates again. Then only missing znodes are read and
// watched.
func (m *mirror) retain(found map[string]*mirrored) {
	for path, old := range m.nodes {
		if found[path] == nil {
			found[path] = old
		}
	}
	m.nodes = found
}

// read reads those parts of a znode that are not known yet. It returns nil if the znode
// does not exist. The watches last until life is done.
func (m *mirror) read(ctx, life context.Context, path string, old *mirrored) (*mirrored, error) {
	n := &mirrored{}
	if old != nil {
		*n = *old
	}
	var err error
	if m.reads(path) && stale(n.data) {
		n.node, n.data, err = m.get(ctx, path)
		m.listen(life, n.data)
	}
	if err == nil && m.lists(path) && stale(n.children) {
		n.names, n.children, err = m.session.ChildrenW(ctx, path)
		m.listen(life, n.children)
	}
	if !errors.Is(err, recipes.ErrNoNode) {
		return n, err
	}
	if path != m.Root {
		return nil, nil // the znode was deleted, so the parent's watch has fired
	}
	exists, created, err := m.session.ExistsW(life, path)
	if err == nil && exists {
		err = ErrReadAgain
	}
	m.listen(life, created)
	return nil, err
}

func (m *mirror) get(ctx context.Context, path string) (session.Node, *session.Watch, error) {
	node, changed, err := m.session.GetW(ctx, path)
	if m.Partial && unreadable(err) {
		node, changed = session.Node{Unreadable: true}, nil
		node.Stat, err = m.session.Stat(ctx, path)
		if errors.Is(err, recipes.ErrAccessDenied) {
			err = nil // since ZooKeeper 3.9 the permission to read covers this too
		}
	}
	return node, changed, err
}

func stale(w *session.Watch) bool { return w == nil || session.Happened(w.Fired()) }

// listen wakes the mirror's goroutine when the watch fires, unless the connection ends first.
func (m *mirror) listen(life context.Context, w *session.Watch) {
	if w == nil {
		return
	}
	disconnected := m.disconnected
	m.watching.Go(func() {
		select {
		case <-w.Fired():
			select {
			case m.wake <- struct{}{}:
			default:
			}
		case <-disconnected:
		case <-life.Done():
		}
	})
}

// Observe sends view's result for the selected znodes: the current value first, then each value
// that differs from the last one. A slow reader may miss values in between, but never the
// latest. The channel is closed when ctx is done, the session is lost, or reading fails. A
// failure is logged with the root's path under the key what.
func Observe[T any](ctx context.Context, s *session.Session, selection Selection, what string, view func(Nodes) T) (<-chan T, error) {
	m := &mirror{session: s, Selection: selection, wake: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(ctx)
	end := func(err error) {
		cancel()
		m.watching.Wait()
		if err != nil {
			m.session.Log().Error("watching ended", what, m.Root, "error", err)
		}
	}
	if err := m.update(ctx); err != nil {
		end(nil)
		return nil, err
	}
	events := func() (_, _, _ <-chan struct{}) { return m.wake, m.disconnected, nil }
	return Stream(ctx, s, view(m.selected()), events, func(ctx context.Context) (T, error) {
		err := m.update(ctx)
		return view(m.selected()), err
	}, end)
}

// Stream sends value, and then each value of next that differs from the last one. It calls next
// after each of the events, while it offers the latest value to a reader. The channel is closed
// when ctx is done, the session is lost, or next fails. Then Stream calls ended, with the error of
// next unless the session itself reports it.
func Stream[T any](ctx context.Context, s *session.Session, value T, events func() (_, _, _ <-chan struct{}), next func(context.Context) (T, error), ended func(error)) (<-chan T, error) {
	out := make(chan T)
	started := s.Background(func(life context.Context) {
		defer close(out)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		offer := out // nil after a reader has received the current value
		for {
			first, second, third := events()
			select {
			case offer <- value:
				offer = nil
				continue
			case <-first:
			case <-second:
			case <-third:
			case <-ctx.Done():
				ended(nil)
				return
			}
			changed, err := session.RetryThrottled(ctx, s, func() (T, error) { return next(ctx) })
			if err != nil {
				if ctx.Err() != nil || errors.Is(err, recipes.ErrSessionLost) {
					err = nil
				}
				ended(err)
				return
			}
			if !reflect.DeepEqual(changed, value) {
				value, offer = changed, out
			}
		}
	})
	if !started {
		ended(nil)
		return nil, s.Err()
	}
	return out, nil
}
