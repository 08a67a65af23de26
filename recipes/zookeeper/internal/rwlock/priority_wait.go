package rwlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// waiter is a contender of a priority lock that is not granted yet.
type waiter struct {
	lock    *priorityLock
	me      contender // waiting
	data    []byte    // of its waiting znode, at
	version int32     // this version
	claimed bool      // a claim was sent
	try     bool
	joined  func(recipes.Place)
	asked   map[string]bool // holders, by name
	armed   line.Watches
}

// wait waits until no contender blocks this one, and claims.
//
// Why a waiter wakes: it watches one of its blockers, and cannot be granted before that
// one is gone or is no longer ahead. A blocker that leaves or claims deletes the znode
// that is watched. The order of contenders that have joined changes only when one of them
// becomes the successor. Its own znode is written then, and it watches that too. It
// remains the successor until its waiting znode is gone. A contender that joins,
// wherever in the order, does not remove a blocker.
func (w *waiter) wait(ctx context.Context) (*line.Hold, error) {
	l := w.lock
	for {
		disconnected, err := l.Session.Connected(ctx)
		if err != nil {
			return nil, err
		}
		state, all, err := l.read(ctx)
		if errors.Is(err, recipes.ErrNoNode) {
			return nil, w.removed()
		}
		if err != nil {
			return nil, err
		}
		position := slices.IndexFunc(all, func(c contender) bool { return c.name == w.me.name })
		if position < 0 {
			return nil, w.removed()
		}
		blocking := blockers(all[:position], w.me.mode)
		switch {
		case len(blocking) == 0:
			w.announce(position)
			hold, err := w.claim(ctx, state)
			if !errors.Is(err, znode.ErrReadAgain) {
				return hold, err
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

func (w *waiter) removed() error {
	return fmt.Errorf("waiting in line: %w: %s", recipes.ErrRemoved, w.lock.Child(w.me.name))
}

func (w *waiter) announce(position int) {
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
func (w *waiter) arm(ctx context.Context, blocking []contender, connection <-chan struct{}) (bool, error) {
	s, watched := w.lock.Session, blocking[len(blocking)-1]
	if w.lock.Line.Strategy == recipes.Herd {
		watched = blocking[0]
	}
	w.armed.Retain([]line.Entry{{Name: watched.name}, {Name: w.me.name}}, connection)
	node, fresh, err := w.armed.Arm(ctx, s, w.lock.Path(), w.me.name)
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
func (w *waiter) ask(ctx context.Context, blocking []contender) error {
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
func (w *waiter) leave() <-chan error {
	znodes := []string{w.lock.Child(w.me.name)}
	if w.claimed {
		znodes = append(znodes, w.lock.Child(w.me.holdingName()))
	}
	return w.lock.Session.Delete(znodes...)
}
