package rwlock

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

var priorityMarkers = line.Spoken{recipes.ZooKeeper: {line.Priority}}

type priorityLock struct {
	line.Recipe[recipes.PriorityHold]
	modes[recipes.PriorityHold]
	revoker
	cfg recipes.PriorityLockConfig
}

// NewPriority returns the priority lock at path.
func NewPriority(lines *line.Lines, path string, cfg recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	of, err := lines.At("priority lock", path, cfg.Strategy, recipes.ZooKeeper, priorityMarkers)
	if err != nil {
		return nil, err
	}
	l := &priorityLock{cfg: cfg}
	l.Recipe, err = line.NewRecipe(of, "priority lock", PriorityContenders, l.hold, cfg.Validate())
	if err != nil {
		return nil, err
	}
	l.modes = modes[recipes.PriorityHold]{l.enter}
	l.revoker = revoker{l.Session, l.znodesOf}
	return l, nil
}

func (l *priorityLock) hold(h *line.Hold) recipes.PriorityHold {
	c, _ := l.contender(h.Znode())
	return &priorityHold{Hold: h, lock: l, mode: c.mode}
}

// enter joins, waits and claims. On an error the contender's znodes are deleted, or are
// being deleted in the background, as in line.Line.Enter.
func (l *priorityLock) enter(ctx context.Context, mode recipes.Mode, try bool) (recipes.PriorityHold, error) {
	if err := ctx.Err(); err != nil {
		return nil, l.Failed(err)
	}
	d := nodeData{revocable: l.cfg.Revocable, grace: l.cfg.Grace, data: l.cfg.Data}
	path, err := l.Session.CreateProtected(ctx, l.Path(), waitingMarker(mode, l.cfg.Priority), d.encode())
	if err != nil {
		return nil, l.Failed(err)
	}
	me, _ := parseName(gopath.Base(path))
	w := &waiter{lock: l, me: me, data: d.encode(), try: try, joined: l.cfg.Joined}
	return w.stay(ctx, w.wait)
}

// stay waits for the contender's grant, or leaves.
func (w *waiter) stay(ctx context.Context, wait func(context.Context) (*line.Hold, error)) (recipes.PriorityHold, error) {
	l := w.lock
	hold, err := wait(ctx)
	if err == nil {
		return l.hold(hold), nil
	}
	deletion := w.leave()
	if errors.Is(err, recipes.ErrContended) || errors.Is(err, recipes.ErrForeign) {
		select {
		case <-deletion:
		case <-ctx.Done():
			return nil, l.Failed(fmt.Errorf("%w; leaving the line: %w", err, ctx.Err()))
		}
	}
	return nil, l.Failed(err)
}

// lockState is the znode of the path. Its version counts the claims of writers and the
// handoffs. Its data names the successor.
type lockState struct {
	version   int32
	successor string
}

const successorWord = "successor="

// read reads the znode of the path, and then lists its children. The order matters. A
// claim that is based on both is refused if a writer has claimed since the first read. So
// every writer that holds the lock at the time of the claim was in the listing.
func (l *priorityLock) read(ctx context.Context) (lockState, []contender, error) {
	node, err := l.Session.Get(ctx, l.Path())
	if err != nil {
		return lockState{}, nil, err
	}
	state := lockState{version: node.Stat.Version}
	successor, ok := parseSuccessor(node.Data)
	if !ok {
		if err := l.Line.MeetsForeign(ctx); err != nil { // at a semaphore's path, its contenders give a better error than its data
			return lockState{}, nil, err
		}
		return lockState{}, nil, fmt.Errorf("%w: the path holds %q, which names no successor", recipes.ErrMismatch, znode.Excerpt(string(node.Data)))
	}
	names, err := l.Session.Children(ctx, l.Path())
	if err != nil {
		return lockState{}, nil, err
	}
	if err := l.Line.Foreign(ctx, names); err != nil {
		return lockState{}, nil, err
	}
	all := ranked(names, successor)
	if slices.ContainsFunc(all, func(c contender) bool { return c.name == successor && !c.holds }) {
		state.successor = successor
	}
	return state, all, nil
}

// parseSuccessor returns the successor in the data of the path, and whether the data is a
// priority lock's.
func parseSuccessor(data []byte) (successor string, ok bool) {
	if successor, ok := strings.CutPrefix(string(data), successorWord); ok {
		return successor, true
	}
	return "", len(data) == 0
}

func (s lockState) data() []byte {
	if s.successor == "" {
		return nil
	}
	return []byte(successorWord + s.successor)
}

// PriorityContenders reads the contenders of a priority lock.
var PriorityContenders = line.Reader{Data: true, Spoken: priorityMarkers, Read: readPriority}

func readPriority(ctx context.Context, s *session.Session, p line.Parent, _ recipes.Dialect) ([]recipes.Contender, error) {
	successor, _ := parseSuccessor(p.Data)
	all := ranked(p.Names, successor)
	entries := make([]line.Entry, len(all))
	for i, c := range all {
		entries[i] = line.Entry{Name: c.name, Sequence: c.sequence}
	}
	found, err := p.Contenders(ctx, s, recipes.KindPriorityLock, entries)
	for i := range found {
		out := &found[i]
		readMarks(out)
		c, _ := parseName(gopath.Base(out.Znode))
		out.Mode, out.Priority, out.Holds = c.mode, c.priority, c.holds
		out.Successor = !c.holds && c.name == successor
		if !out.Holds {
			out.Token = 0
		}
	}
	return found, err
}
