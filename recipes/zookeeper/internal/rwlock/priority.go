package rwlock

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

var priorityMarkers = line.Spoken{recipes.ZooKeeper: {line.Priority}}

type priorityLock struct {
	line     *line.Line // for contenders of other recipes
	session  *session.Session
	path     string
	strategy recipes.Strategy
	cfg      recipes.PriorityLockConfig
}

// NewPriority returns the priority lock at path.
func NewPriority(lines *line.Lines, path string, cfg recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	l, err := lines.At("priority lock", path, cfg.Strategy, recipes.ZooKeeper, priorityMarkers)
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("priority lock %s: %w", path, err)
	}
	return &priorityLock{line: l, session: l.Session, path: path, strategy: l.Strategy, cfg: cfg}, nil
}

func (l *priorityLock) Path() string { return l.path }

func (l *priorityLock) AcquireRead(ctx context.Context) (recipes.PriorityHold, error) {
	return l.enter(ctx, recipes.Reading, false)
}

func (l *priorityLock) AcquireWrite(ctx context.Context) (recipes.PriorityHold, error) {
	return l.enter(ctx, recipes.Writing, false)
}

func (l *priorityLock) TryRead(ctx context.Context) (recipes.PriorityHold, error) {
	return l.enter(ctx, recipes.Reading, true)
}

func (l *priorityLock) TryWrite(ctx context.Context) (recipes.PriorityHold, error) {
	return l.enter(ctx, recipes.Writing, true)
}

func (l *priorityLock) failed(err error) error {
	return fmt.Errorf("priority lock %s: %w", l.path, err)
}

func (l *priorityLock) at(name string) string { return gopath.Join(l.path, name) }

// enter joins, waits and claims. After an error nothing of the contender remains,
// or it is deleted in the background, as in line.Line.Enter.
func (l *priorityLock) enter(ctx context.Context, mode recipes.Mode, try bool) (recipes.PriorityHold, error) {
	if err := ctx.Err(); err != nil {
		return nil, l.failed(err)
	}
	d := nodeData{revocable: l.cfg.Revocable, grace: l.cfg.Grace, data: l.cfg.Data}
	path, err := l.session.CreateProtected(ctx, l.path, waitingMarker(mode, l.cfg.Priority), d.encode())
	if err != nil {
		return nil, l.failed(err)
	}
	me, _ := parseName(gopath.Base(path))
	w := &waiter{lock: l, me: me, data: d.encode(), try: try, joined: l.cfg.Joined}
	return w.stay(ctx, w.wait)
}

// stay waits for the contender's turn, or leaves.
func (w *waiter) stay(ctx context.Context, wait func(context.Context) (*line.Hold, error)) (recipes.PriorityHold, error) {
	l := w.lock
	hold, err := wait(ctx)
	if err == nil {
		return &priorityHold{Hold: hold, lock: l, mode: w.me.mode}, nil
	}
	deletion := w.leave()
	if errors.Is(err, recipes.ErrContended) || errors.Is(err, recipes.ErrForeign) {
		select {
		case <-deletion:
		case <-ctx.Done():
			return nil, l.failed(fmt.Errorf("%w; leaving the line: %w", err, ctx.Err()))
		}
	}
	return nil, l.failed(err)
}

// lockState is the path's own znode. Its version counts the claims of writers and
// the hand-offs; its data names the successor.
type lockState struct {
	version   int32
	successor string
}

const successorWord = "successor="

// read reads the path's znode and then the line. The order matters: a claim that is
// based on both is refused if a writer has claimed since the path's znode was read.
// So any writer that holds at the time of the claim was in the listing.
func (l *priorityLock) read(ctx context.Context) (lockState, []contender, error) {
	node, err := l.session.Get(ctx, l.path)
	if err != nil {
		return lockState{}, nil, err
	}
	state := lockState{version: node.Stat.Version}
	successor, ok := parseSuccessor(node.Data)
	if !ok {
		if err := l.line.MeetsForeign(ctx); err != nil { // a semaphore's contenders say more than its data
			return lockState{}, nil, err
		}
		return lockState{}, nil, fmt.Errorf("%w: the path holds %q, which names no successor", recipes.ErrMismatch, znode.Excerpt(string(node.Data)))
	}
	names, err := l.session.Children(ctx, l.path)
	if err != nil {
		return lockState{}, nil, err
	}
	if err := l.line.Foreign(ctx, names); err != nil {
		return lockState{}, nil, err
	}
	all := ranked(names, successor)
	if waits(all, successor) {
		state.successor = successor
	}
	return state, all, nil
}

// parseSuccessor returns the successor in the path's data, and whether the data
// is a priority lock's.
func parseSuccessor(data []byte) (successor string, ok bool) {
	if successor, ok := strings.CutPrefix(string(data), successorWord); ok {
		return successor, true
	}
	return "", len(data) == 0
}

// waits reports whether a contender of that name waits.
func waits(all []contender, name string) bool {
	for _, c := range all {
		if c.name == name && !c.holds {
			return true
		}
	}
	return false
}

func (s lockState) data() []byte {
	if s.successor == "" {
		return nil
	}
	return []byte(successorWord + s.successor)
}

func (l *priorityLock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	all, err := PriorityContenders.At(ctx, l.session, l.path, recipes.ZooKeeper)
	if err != nil {
		return nil, l.failed(err)
	}
	return all, nil
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
