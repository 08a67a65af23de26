package rwlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// waiter is a contender of a priority lock that is not granted yet.
type waiter struct {
	lock    *priorityLock
	me      contender // waiting
	data    []byte    // of its waiting znode, and
	version int32     // its version
	claimed bool      // a claim was sent
	try     bool
	joined  func(recipes.Place)
	asked   map[string]bool // holders, by name
	armed   line.Watches
}

// wait waits until no contender is in the way, and claims.
//
// Why it wakes up: it watches one of the contenders in the way. It cannot be granted
// before that one has gone or has stopped being ahead. To leave and to begin to hold
// both delete the znode that is watched. An existing order changes in one way only:
// a contender becomes the successor. Its own znode is written then, which it watches
// too. (A successor remains the successor until its waiting znode is gone.) A
// contender that joins, wherever in the order, takes no other out of the way.
func (w *waiter) wait(ctx context.Context) (*line.Hold, error) {
	l := w.lock
	for {
		disconnected, err := l.session.Connected(ctx)
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
		position := -1
		for i, c := range all {
			if c.name == w.me.name {
				position = i
			}
		}
		if position < 0 {
			return nil, w.removed()
		}
		inTheWay := blockers(all[:position], w.me.mode)
		switch {
		case len(inTheWay) == 0:
			w.tell(position)
			hold, err := w.claim(ctx, state)
			if !errors.Is(err, znode.ErrReadAgain) {
				return hold, err
			}
			continue
		case w.try:
			w.tell(position)
			return nil, fmt.Errorf("%w: %s", recipes.ErrContended, l.at(inTheWay[0].name))
		}
		ready, err := w.arm(ctx, inTheWay, disconnected)
		if err != nil {
			return nil, err
		}
		if !ready {
			continue
		}
		if l.cfg.Ask {
			if err := w.ask(ctx, inTheWay); err != nil {
				return nil, err
			}
		}
		w.tell(position)
		l.session.PrepareProof()
		if err := w.armed.Wait(ctx, l.session, "waiting for "+l.path, disconnected); err != nil {
			return nil, err
		}
	}
}

func (w *waiter) removed() error {
	return fmt.Errorf("waiting in line: %w: %s", recipes.ErrRemoved, w.lock.at(w.me.name))
}

func (w *waiter) tell(position int) {
	if w.joined != nil {
		w.joined(recipes.Place{Znode: w.lock.at(w.me.name), Position: position})
		w.joined = nil
	}
}

// arm watches one of the contenders in the way, and the waiter's own znode. It
// reports whether it is enough to wait for these two. It is not if one of them has
// gone. Nor is it if its own znode was not watched before the last look at the line:
// the waiter may have become the successor in between. Then the contender that it
// would watch is behind it, and waits for it. So the first wait looks twice, and a
// contender that never waits does not pay for the watch. (The history test found all
// contenders waiting for each other.)
func (w *waiter) arm(ctx context.Context, inTheWay []contender, connection <-chan struct{}) (bool, error) {
	s, watched := w.lock.session, inTheWay[len(inTheWay)-1]
	if w.lock.strategy == recipes.Herd {
		watched = inTheWay[0]
	}
	w.armed.Retain([]line.Entry{{Name: watched.name}, {Name: w.me.name}}, connection)
	node, fresh, err := w.armed.Arm(ctx, s, w.lock.path, w.me.name)
	switch {
	case err == nil && fresh:
		w.data, w.version = node.Data, node.Stat.Version
		return false, nil
	case err == nil:
		_, _, err = w.armed.Arm(ctx, s, w.lock.path, watched.name)
	}
	if errors.Is(err, recipes.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// ask asks holders of lower priority to give way, each once.
func (w *waiter) ask(ctx context.Context, inTheWay []contender) error {
	for _, c := range inTheWay {
		if !c.holds || c.priority <= w.me.priority || w.asked[c.name] {
			continue
		}
		_, err := revoke(ctx, w.lock.session, w.lock.at(c.name), false)
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

// leave deletes what there is of the contender. The order matters: a claim that is
// still under way fails once the waiting znode is gone. So if the claim has made a
// holding znode, that one is there when it is deleted.
func (w *waiter) leave() <-chan error {
	znodes := []string{w.lock.at(w.me.name)}
	if w.claimed {
		znodes = append(znodes, w.lock.at(w.me.holdingName()))
	}
	return w.lock.session.Delete(znodes...)
}
