package zookeeper

import (
	"context"
	"errors"
	gopath "path"
	"reflect"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"golang.org/x/sync/errgroup"
)

// mirror is what was read of a path and the nodes below it: of a group, a
// directory of names, a configuration. Looking again reads only what a watch has
// told of, and all of it after a lost connection. It belongs to one goroutine.
//
// ZooKeeper's persistent recursive watches would need one watch instead of one
// or two for each node, but go-zookeeper does not know them, and servers before
// 3.6 neither.
type mirror struct {
	session *session.Session
	root    string
	all     bool // all levels and the root's own data, and not only its children
	flat    bool // with all: the root alone
	named   bool // without children whose names recipes make
	watch   bool

	nodes        map[string]*mirrored
	disconnected <-chan struct{}
	wake         chan struct{} // holds an element when a watch has fired
	watching     sync.WaitGroup
}

// mirrored is one node of it.
type mirrored struct {
	node           session.Node
	names          []string
	data, children *session.Watch // nil: to be read
}

func newMirror(s *session.Session, root string, all, watch bool) *mirror {
	return &mirror{session: s, root: root, all: all, watch: watch, wake: make(chan struct{}, 1)}
}

// look brings the mirror up to date. If the root does not exist it is empty.
func (m *mirror) look(ctx context.Context) error {
	for {
		disconnected, err := m.session.Connected(ctx)
		if err != nil {
			return err
		}
		if disconnected != m.disconnected {
			m.nodes, m.disconnected = nil, disconnected
		}
		if err := m.walk(ctx); !errors.Is(err, errLookAgain) {
			return err
		}
	}
}

func (m *mirror) walk(ctx context.Context) error {
	found := make(map[string]*mirrored, len(m.nodes))
	for level := []string{m.root}; len(level) > 0; {
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
		if err := g.Wait(); err != nil {
			return err
		}
		var next []string
		for i, path := range level {
			if read[i] == nil {
				continue // it went while it was looked at
			}
			found[path] = read[i]
			for _, name := range read[i].names {
				if m.named && strings.HasPrefix(name, "_c_") {
					continue
				}
				next = append(next, gopath.Join(path, name))
			}
		}
		level = next
	}
	m.nodes = found
	return nil
}

// read reads of one node what is not known, nothing if it does not exist. life is
// that of the watches.
func (m *mirror) read(ctx, life context.Context, path string, old *mirrored) (*mirrored, error) {
	n := &mirrored{}
	if old != nil {
		*n = *old
	}
	isRoot := path == m.root
	var err error
	if (m.all || !isRoot) && stale(n.data) {
		n.node, n.data, err = m.get(ctx, path)
		m.listen(life, n.data)
	}
	if err == nil && !m.flat && (m.all || isRoot) && stale(n.children) {
		n.names, n.children, err = m.list(ctx, path)
		m.listen(life, n.children)
	}
	if !errors.Is(err, recipes.ErrNoNode) {
		return n, err
	}
	if !isRoot || !m.watch {
		return nil, nil // the parent's watch has fired
	}
	exists, created, err := m.session.ExistsW(ctx, path)
	if err == nil && exists {
		err = errLookAgain
	}
	m.listen(life, created)
	return nil, err
}

func (m *mirror) get(ctx context.Context, path string) (session.Node, *session.Watch, error) {
	if m.watch {
		return m.session.GetW(ctx, path)
	}
	node, err := m.session.Get(ctx, path)
	return node, nil, err
}

func (m *mirror) list(ctx context.Context, path string) ([]string, *session.Watch, error) {
	if m.watch {
		return m.session.ChildrenW(ctx, path)
	}
	names, err := m.session.Children(ctx, path)
	return names, nil, err
}

func stale(w *session.Watch) bool { return w == nil || session.Happened(w.Fired()) }

// listen wakes the mirror's goroutine when the watch fires, which it does not
// after the connection was lost.
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

// stream gives what view makes of the mirror: first the present value, then every
// other one. A slow reader may miss values in between, never the latest. The
// channel is closed when ctx ends or the session is lost.
func stream[T any](ctx context.Context, m *mirror, what string, view func(*mirror) T) (<-chan T, error) {
	ctx, cancel := context.WithCancel(ctx)
	if err := m.look(ctx); err != nil {
		cancel()
		m.watching.Wait()
		return nil, err
	}
	out := make(chan T)
	started := m.session.Background(func(life context.Context) {
		defer close(out)
		defer m.watching.Wait()
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		follow(ctx, m, what, view, out)
	})
	if !started {
		cancel()
		m.watching.Wait()
		return nil, m.session.Err()
	}
	return out, nil
}

// follow offers the latest value until it is taken, and looks for the next
// meanwhile.
func follow[T any](ctx context.Context, m *mirror, what string, view func(*mirror) T, out chan<- T) {
	value := view(m)
	offer := out // nil when the present value has been taken
	for {
		select {
		case offer <- value:
			offer = nil
			continue
		case <-m.wake:
		case <-m.disconnected:
		case <-ctx.Done():
			return
		}
		if err := m.look(ctx); err != nil {
			if ctx.Err() == nil {
				m.session.Log().Error("watching ended", what, m.root, "error", err)
			}
			return
		}
		if next := view(m); !reflect.DeepEqual(next, value) {
			value, offer = next, out
		}
	}
}
