package rwlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strconv"
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

func (ls ReadWriteLocks) PriorityLock(path string, cfg recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	return session.InDialect(ls.Lines.Session, path, recipes.ZooKeeper, func() (recipes.PriorityLock, error) { return openPriorityLock(ls.Lines, path, cfg) })
}

func openPriorityLock(lines *line.Lines, path string, cfg recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	of, err := lines.At("priority lock", path, cfg.Strategy, recipes.ZooKeeper, priorityMarkers)
	if err != nil {
		return nil, err
	}
	if cfg.Revocable {
		of.Asked = isRevoked
	}
	l := &priorityLock{cfg: cfg}
	l.Recipe, err = line.NewRecipe(of, "priority lock", PriorityContenders, l.hold, cfg.Validate())
	if err != nil {
		return nil, err
	}
	l.modes = modes[recipes.PriorityHold]{l.acquire}
	l.revoker = revoker{l.Session, l.znodesOf}
	return l, nil
}

func (l *priorityLock) hold(h *line.Hold) recipes.PriorityHold {
	c, _ := l.contender(h.Znode())
	return &priorityHold{Hold: h, lock: l, mode: c.mode}
}

// acquire joins, waits and claims. On an error the contender's znodes are deleted, or are
// being deleted in the background, as in line.Line.Enter.
func (l *priorityLock) acquire(ctx context.Context, mode recipes.Mode, try bool) (recipes.PriorityHold, error) {
	return l.Granted(l.Metered(ctx, func() (*line.Hold, error) { return l.join(ctx, mode, try) }))
}

func (l *priorityLock) join(ctx context.Context, mode recipes.Mode, try bool) (*line.Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d := nodeData{revocable: l.cfg.Revocable, grace: l.cfg.Grace, data: l.cfg.Data}
	path, err := l.Session.CreateProtected(ctx, l.Path(), fmt.Sprintf("%s-%02d-", mode, l.cfg.Priority), d.encode())
	if err != nil {
		return nil, err
	}
	me, _ := parseName(gopath.Base(path))
	w := &priorityWaiter{lock: l, me: me, data: d.encode(), try: try, joined: l.cfg.Joined}
	return w.waitOrLeave(ctx)
}

func (w *priorityWaiter) waitOrLeave(ctx context.Context) (*line.Hold, error) {
	hold, err := w.awaitGrant(ctx)
	if err == nil {
		return hold, nil
	}
	return nil, w.lock.Line.AfterLeaving(ctx, w.leave(), err)
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

// contender is a contender of a priority lock, as the name of its znode describes it.
type contender struct {
	name     string
	prefix   string // of the name, up to the mode: "_c_<guid>-"
	mode     recipes.Mode
	holds    bool
	priority int
	sequence int32
}

// ranked returns the contenders among the names of the path's children, ranked.
func ranked(names []string, successor string) []contender {
	var all []contender
	for _, name := range names {
		if c, ok := parseName(name); ok {
			all = append(all, c)
		}
	}
	rank(all, successor)
	return all
}

func parseName(name string) (contender, bool) {
	m := line.PriorityName.FindStringSubmatch(name)
	if m == nil {
		return contender{}, false
	}
	sequence, err := strconv.ParseInt(m[4], 10, 32)
	if err != nil {
		return contender{}, false
	}
	priority, _ := strconv.Atoi(m[3])
	c := contender{name: name, prefix: m[1], mode: recipes.Mode(m[2]), priority: priority, sequence: int32(sequence)}
	for waiting, holding := range holdingWord {
		if m[2] == holding {
			c.mode, c.holds = waiting, true
		}
	}
	return c, true
}

// holdingWord is the word for a mode in the name of a holder's znode.
var holdingWord = map[recipes.Mode]string{recipes.Reading: "reading", recipes.Writing: "writing"}

// holdingName is the name of the znode that replaces a waiter's in a claim.
func (c contender) holdingName() string {
	return c.prefix + holdingWord[c.mode] + c.name[len(c.prefix)+len(c.mode):]
}

// rank sorts contenders in the order in which they are granted: the holders, the
// successor, the waiters by priority and sequence number. ZooKeeper repeats its last
// sequence number, and the names decide between equal numbers. That order can be unfair.
// But it is safe, because only a claim grants.
func rank(all []contender, successor string) {
	class := func(c contender) int {
		switch {
		case c.holds:
			return 0
		case c.name == successor:
			return 1
		}
		return 2 + c.priority
	}
	slices.SortFunc(all, func(a, b contender) int {
		if c := cmp.Compare(class(a), class(b)); c != 0 {
			return c
		}
		switch {
		case line.Before(a.sequence, b.sequence):
			return -1
		case line.Before(b.sequence, a.sequence):
			return 1
		}
		return cmp.Compare(a.name, b.name)
	})
}

// blockers returns the predecessors that block a contender of that mode, in their order.
func blockers(predecessors []contender, mode recipes.Mode) []contender {
	if mode == recipes.Writing {
		return predecessors
	}
	return slices.DeleteFunc(slices.Clone(predecessors), func(c contender) bool { return c.mode != recipes.Writing })
}

type priorityHold struct {
	*line.Hold
	lock *priorityLock
	mode recipes.Mode
}

func (h *priorityHold) Mode() recipes.Mode { return h.mode }

func (h *priorityHold) HandOff(ctx context.Context, successor string) error {
	c, ok := h.lock.contender(successor)
	if !ok || c.holds {
		return fmt.Errorf("handoff of %s: %w: %q is not a waiter of this lock", h.lock.Path(), recipes.ErrInvalid, successor)
	}
	err := h.Yield(func() error { return h.handOff(ctx, c) })
	if errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		err = h.Err()
	}
	if err != nil {
		return fmt.Errorf("handoff of %s: %w", h.lock.Path(), err)
	}
	return nil
}

// handOff names the successor and deletes the holder's znode in one transaction. The
// transaction also writes the data of the successor's znode, unchanged. That wakes the
// successor, because the contender that it watches may be behind it from now on.
func (h *priorityHold) handOff(ctx context.Context, successor contender) error {
	l := h.lock
	const ofHold = 0 // the operation on the holder's znode
	for {
		if err := h.Err(); err != nil {
			return err
		}
		state, _, err := l.read(ctx)
		if errors.Is(err, recipes.ErrNoNode) {
			return h.Removed() // together with the path
		}
		if err != nil {
			return err
		}
		if state.successor != "" {
			return fmt.Errorf("%w: another holder has named %s", recipes.ErrContended, state.successor)
		}
		node, err := l.Session.Get(ctx, l.Child(successor.name))
		if err != nil {
			return err
		}
		state.successor = successor.name
		var t session.Txn
		t.Delete(h.Znode(), recipes.AnyVersion)
		t.Set(l.Path(), state.data(), state.version)
		t.Set(l.Child(successor.name), node.Data, node.Stat.Version)
		err = l.Session.Commit(ctx, t)
		switch {
		case err == nil:
			return nil
		case znode.RefusedOp(err) == ofHold && errors.Is(err, recipes.ErrNoNode):
			return h.Removed()
		case errors.Is(err, recipes.ErrBadVersion):
			continue
		case l.Session.Unsettled(ctx, err):
			if done, err := h.handedOff(ctx); done || err != nil {
				return err
			}
			continue
		}
		return l.Session.Because(ctx, err)
	}
}

// handedOff finds out whether a handoff of unknown outcome was committed: the holder's
// znode is gone then. If another client has deleted that znode at the same moment, the
// successor may not have been named. The two cases cannot be distinguished.
func (h *priorityHold) handedOff(ctx context.Context) (bool, error) {
	s := h.lock.Session
	if err := s.Sync(ctx, h.lock.Path()); err != nil {
		return false, znode.UnknownOutcome(err)
	}
	_, err := s.Stat(ctx, h.Znode())
	if errors.Is(err, recipes.ErrNoNode) {
		return true, nil
	}
	return false, znode.UnknownOutcome(err)
}

func (l *priorityLock) contender(path string) (contender, bool) {
	c, ok := parseName(gopath.Base(path))
	return c, ok && gopath.Dir(path) == l.Path()
}

// znodesOf is revoker.znodes. A waiter has a holding znode after its claim. The claim
// copies a request to give way, and is refused if a request comes in between.
func (l *priorityLock) znodesOf(path string) ([]string, error) {
	c, ok := l.contender(path)
	if !ok {
		return nil, fmt.Errorf("revoke: %w: %q is not a contender of the priority lock %s", recipes.ErrInvalid, path, l.Path())
	}
	if c.holds {
		return []string{path}, nil
	}
	return []string{path, l.Child(c.holdingName())}, nil
}
