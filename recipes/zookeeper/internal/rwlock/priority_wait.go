package rwlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// priorityWaiter is a contender of a priority lock that is not granted yet.
type priorityWaiter struct {
	lock    *priorityLock
	me      contender // waiting
	data    []byte    // the data of its waiting znode, at version
	version int32     // the version of data
	claimed bool      // a claim was sent
	held    bool      // and committed
	try     bool
	joined  func(recipes.Place)
	asked   map[string]bool // holders, by name
	armed   line.Watches
}

// awaitGrant waits until no contender blocks this one, and claims. A writer that has claimed waits
// until it holds alone: readers that have claimed between its last listing and its claim were
// granted first. No other contender can claim then. A contender that reads the znode of the path
// after the writer's claim finds the writer among the holders. The claim of one that has read it
// before is refused.
//
// Why a waiter wakes: it watches one of its blockers, and cannot be granted before that
// one is gone or is no longer ahead. A blocker that leaves or claims deletes the znode
// that is watched. The order of contenders that have joined changes only when one of them
// becomes the successor. Its own znode is written then, and it watches that too. It
// remains the successor until its waiting znode is gone. A contender that joins,
// wherever in the order, does not remove a blocker.
func (w *priorityWaiter) awaitGrant(ctx context.Context) (*line.Hold, error) {
	l := w.lock
	for {
		disconnected, err := l.Session.Connected(ctx)
		if err != nil {
			return nil, err
		}
		state, all, err := w.list(ctx)
		if errors.Is(err, recipes.ErrNoNode) {
			return nil, w.removed()
		}
		if err != nil {
			return nil, err
		}
		position := slices.IndexFunc(all, func(c contender) bool { return c.name == w.name() })
		if position < 0 {
			return nil, w.removed()
		}
		blocking := blockers(all[:position], w.me.mode)
		if w.held {
			blocking = slices.DeleteFunc(all, func(c contender) bool {
				return !c.holds || c.name == w.name() || w.me.mode != recipes.Writing
			})
		}
		switch {
		case len(blocking) == 0 && w.held:
			return l.Line.Granted(ctx, l.Child(w.me.holdingName()))
		case len(blocking) == 0:
			w.announce(position)
			err := w.claim(ctx, state)
			if err == nil && w.me.mode != recipes.Writing {
				return l.Line.Granted(ctx, l.Child(w.me.holdingName()))
			}
			if err != nil && !errors.Is(err, znode.ErrReadAgain) {
				return nil, err
			}
			continue
		case w.try:
			w.announce(position)
			return nil, fmt.Errorf("%w: %s", recipes.ErrContended, l.Child(blocking[0].name))
		}
		ready, err := w.arm(ctx, blocking, disconnected)
		if err != nil {
			return nil, err
		}
		if !ready {
			continue
		}
		if l.cfg.Ask {
			if err := w.ask(ctx, blocking); err != nil {
				return nil, err
			}
		}
		w.announce(position)
		l.Session.PrepareProof()
		if err := w.armed.Wait(ctx, l.Session, "waiting for "+l.Path(), disconnected); err != nil {
			return nil, err
		}
	}
}

// list lists the contenders. It also finds out whether a claim of unknown outcome was committed.
func (w *priorityWaiter) list(ctx context.Context) (lockState, []contender, error) {
	if w.held {
		names, err := w.lock.Line.Names(ctx)
		return lockState{}, ranked(names, ""), err
	}
	state, all, err := w.lock.read(ctx)
	w.held = w.claimed && slices.ContainsFunc(all, func(c contender) bool { return c.name == w.me.holdingName() })
	return state, all, err
}

// name is the name of the contender's znode.
func (w *priorityWaiter) name() string {
	if w.held {
		return w.me.holdingName()
	}
	return w.me.name
}

func (w *priorityWaiter) removed() error {
	return fmt.Errorf("waiting in line: %w: %s", recipes.ErrRemoved, w.lock.Child(w.name()))
}

func (w *priorityWaiter) announce(position int) {
	if w.joined != nil {
		w.joined(recipes.Place{Znode: w.lock.Child(w.me.name), Position: position})
		w.joined = nil
	}
}

// arm watches one of the blockers, and the waiter's own znode. It reports whether the
// waiter can wait for these two. It cannot if one of them is gone. It also cannot if its
// own znode was not yet watched at the last listing. The waiter may have become the
// successor in between. Then the contender that it would watch is behind it, and waits for
// it. (The history test found all contenders waiting for each other.) So the first wait
// lists twice, and a contender that never waits does not pay for the watch.
func (w *priorityWaiter) arm(ctx context.Context, blocking []contender, connection <-chan struct{}) (bool, error) {
	s, watched := w.lock.Session, blocking[len(blocking)-1]
	if w.lock.Line.Strategy == recipes.Herd {
		watched = blocking[0]
	}
	w.armed.Retain([]line.Entry{{Name: watched.name}, {Name: w.me.name}}, connection)
	var node session.Node
	var fresh bool
	var err error
	if !w.held { // then its place in the order does not change any more
		node, fresh, err = w.armed.Arm(ctx, s, w.lock.Path(), w.me.name)
	}
	switch {
	case err == nil && fresh:
		w.data, w.version = node.Data, node.Stat.Version
		return false, nil
	case err == nil:
		_, _, err = w.armed.Arm(ctx, s, w.lock.Path(), watched.name)
	}
	if errors.Is(err, recipes.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// ask asks holders of lower priority to give way, each once.
func (w *priorityWaiter) ask(ctx context.Context, blocking []contender) error {
	for _, c := range blocking {
		if !c.holds || c.priority <= w.me.priority || w.asked[c.name] {
			continue
		}
		_, err := revoke(ctx, w.lock.Session, w.lock.Child(c.name), false)
		if err != nil && !errors.Is(err, recipes.ErrNoNode) && !errors.Is(err, recipes.ErrNotRevocable) {
			return fmt.Errorf("ask %s to give way: %w", c.name, err)
		}
		if w.asked == nil {
			w.asked = make(map[string]bool)
		}
		w.asked[c.name] = true
	}
	return nil
}

// leave deletes the contender's znodes. The order matters: once the waiting znode is gone,
// a claim that is still under way fails. So if the claim creates a holding znode at all,
// that znode exists by the time it is deleted.
func (w *priorityWaiter) leave() <-chan error {
	znodes := []string{w.lock.Child(w.me.name)}
	if w.claimed {
		znodes = append(znodes, w.lock.Child(w.me.holdingName()))
	}
	return w.lock.Session.Delete(znodes...)
}

// claim replaces the waiting znode by a holding znode with the same data. The server
// refuses the claim if a writer has claimed since state was read, or if another client has
// written to the waiting znode. Readers only check the znode of the path. So the claims of
// readers that are granted together do not refuse each other.
func (w *priorityWaiter) claim(ctx context.Context, state lockState) error {
	const ofWaiting = 1 // the operation on the waiting znode
	var t session.Txn
	switch {
	case state.successor == w.me.name:
		state.successor = ""
		t.Set(w.lock.Path(), state.data(), state.version)
	case w.me.mode == recipes.Writing:
		t.Set(w.lock.Path(), state.data(), state.version)
	default:
		t.Check(w.lock.Path(), state.version)
	}
	t.Delete(w.lock.Child(w.me.name), w.version)
	t.Create(w.lock.Child(w.me.holdingName()), w.data, true)
	w.claimed = true
	err := w.lock.Session.Commit(ctx, t)
	switch {
	case err == nil:
		w.held = true
		return nil
	case znode.RefusedOp(err) == ofWaiting && errors.Is(err, recipes.ErrBadVersion):
		return w.rereadData(ctx)
	case errors.Is(err, recipes.ErrNoNode):
		return w.removed() // the path may be deleted, and all contenders with it
	case !znode.TryAgain(ctx, w.lock.Session, err):
	case errors.Is(err, recipes.ErrUnknownOutcome): // after a sync, it was committed or never will be
		return cmp.Or(w.lock.Session.Sync(ctx, w.lock.Path()), znode.ErrReadAgain)
	default:
		return znode.ErrReadAgain
	}
	return znode.GivenUp(ctx, w.lock.Session, "claim "+w.lock.Path(), err) // leave undoes the claim
}

// rereadData reads the waiting znode again, after another client has written to it.
func (w *priorityWaiter) rereadData(ctx context.Context) error {
	node, err := w.lock.Session.Get(ctx, w.lock.Child(w.me.name))
	if errors.Is(err, recipes.ErrNoNode) {
		return w.removed()
	}
	if err != nil {
		return err
	}
	w.data, w.version = node.Data, node.Stat.Version
	return znode.ErrReadAgain
}

// ResumeWaiting is line.Line.ResumeWaiting. If the waiting znode is gone, the contender may
// have claimed the lock before its process ended.
func (l *priorityLock) ResumeWaiting(ctx context.Context, znode string, try bool) (recipes.PriorityHold, error) {
	me, ok := l.contender(znode)
	if !ok || me.holds {
		return nil, l.Failed(fmt.Errorf("resume: %w: %q is not a waiter's znode", recipes.ErrInvalid, znode))
	}
	w := &priorityWaiter{lock: l, me: me, try: try, joined: l.cfg.Joined}
	node, err := line.ResumeWaiter(ctx, l.Session, znode)
	w.data, w.version = node.Data, node.Stat.Version
	if errors.Is(err, recipes.ErrRemoved) {
		w.claimed, w.held = true, true
		if _, err = line.ResumeWaiter(ctx, l.Session, l.Child(me.holdingName())); err == nil {
			w.announce(recipes.UnknownPosition)
		}
	}
	if err != nil {
		return nil, l.Failed(err)
	}
	return l.Granted(w.waitOrLeave(ctx))
}

// Resume is line.Line.Resume for a holding znode. A writer that was still waiting for
// readers after its claim was not granted.
func (l *priorityLock) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.PriorityHold, error) {
	me, ok := l.contender(znode)
	if !ok || !me.holds {
		return nil, l.Failed(fmt.Errorf("resume: %w: %q is not a holder's znode", recipes.ErrInvalid, znode))
	}
	names, err := l.Session.Children(ctx, l.Path())
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return nil, l.Failed(err)
	}
	for _, other := range ranked(names, "") {
		if me.mode == recipes.Writing && other.holds && other.name != me.name {
			return nil, l.Failed(fmt.Errorf("resume: %w: %s holds it too", recipes.ErrNotHeld, other.name))
		}
	}
	return l.Granted(l.Line.ResumeHold(ctx, znode, token))
}
