package rwlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// claim replaces the waiting znode by a holding one. The server refuses it if a
// writer has claimed since state was read, or if somebody has written to the waiting
// znode, whose data the claim takes along. Readers only check the path's znode, so
// readers that are granted together do not refuse each other.
func (w *waiter) claim(ctx context.Context, state lockState) (*line.Hold, error) {
	holding := w.lock.at(w.me.holdingName())
	const ofWaiting = 1 // the operation that is refused when the waiting znode was written to
	var t session.Txn
	switch {
	case state.successor == w.me.name:
		state.successor = ""
		t.Set(w.lock.path, state.data(), state.version)
	case w.me.mode == recipes.Writing:
		t.Set(w.lock.path, state.data(), state.version)
	default:
		t.Check(w.lock.path, state.version)
	}
	t.Delete(w.lock.at(w.me.name), w.version)
	t.Create(holding, w.data, true)
	w.claimed = true
	err := w.lock.session.Commit(ctx, t)
	switch {
	case err == nil:
		return w.grant(ctx, holding)
	case znode.RefusedOp(err) == ofWaiting && errors.Is(err, recipes.ErrBadVersion):
		return nil, w.rereadData(ctx)
	case errors.Is(err, recipes.ErrNoNode):
		return nil, w.removed() // or the path, and all that waited below it
	case znode.TryAgain(ctx, w.lock.session, err):
		return w.findClaim(ctx, holding, errors.Is(err, recipes.ErrUnknownOutcome))
	}
	return nil, znode.GivenUp(ctx, w.lock.session, "claim "+w.lock.path, err) // leave undoes it
}

// rereadData reads what somebody has written to the waiting znode.
func (w *waiter) rereadData(ctx context.Context) error {
	node, err := w.lock.session.Get(ctx, w.lock.at(w.me.name))
	if errors.Is(err, recipes.ErrNoNode) {
		return w.removed()
	}
	if err != nil {
		return err
	}
	w.data, w.version = node.Data, node.Stat.Version
	return znode.ErrReadAgain
}

// findClaim finds out whether a claim of unknown outcome was carried out. After the
// sync it cannot be carried out any more.
func (w *waiter) findClaim(ctx context.Context, holding string, unknown bool) (*line.Hold, error) {
	if !unknown {
		return nil, znode.ErrReadAgain
	}
	if err := w.lock.session.Sync(ctx, w.lock.path); err != nil {
		return nil, err
	}
	_, err := w.lock.session.Stat(ctx, holding)
	switch {
	case err == nil:
		return w.grant(ctx, holding)
	case errors.Is(err, recipes.ErrNoNode):
		return nil, znode.ErrReadAgain
	}
	return nil, err
}

// grant reads the holding znode, as a line.Line reads that of the first in line.
func (w *waiter) grant(ctx context.Context, holding string) (*line.Hold, error) {
	s := w.lock.session
	stat, err := s.Stat(ctx, holding)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, w.claimRemoved()
	}
	if err != nil {
		return nil, err
	}
	if stat.EphemeralOwner != s.ID() {
		return nil, fmt.Errorf("claimed: %w: %s belongs to session %#x", recipes.ErrRemoved, holding, stat.EphemeralOwner)
	}
	if w.me.mode == recipes.Writing {
		if err := w.awaitReaders(ctx); err != nil {
			return nil, err
		}
	}
	hold, err := line.NewRevocable(ctx, s, holding, recipes.Token(stat.Czxid), w.lock.asked())
	if err != nil {
		return nil, err
	}
	return w.lock.line.Inspected(hold), nil
}

// asked is that of line.NewRevocable.
func (l *priorityLock) asked() func([]byte) bool {
	if l.cfg.Revocable {
		return isRevoked
	}
	return nil
}

// ResumeWaiting is line.Line.ResumeWaiting. Where the waiting znode is gone, the contender may have
// claimed the lock before its process ended.
func (l *priorityLock) ResumeWaiting(ctx context.Context, znode string, try bool) (recipes.PriorityHold, error) {
	me, ok := l.contender(znode)
	if !ok || me.holds {
		return nil, l.failed(fmt.Errorf("resume: %w: %q is not a waiter's znode", recipes.ErrInvalid, znode))
	}
	w := &waiter{lock: l, me: me, try: try, joined: l.cfg.Joined}
	node, err := line.ResumeWaiter(ctx, l.session, znode)
	switch {
	case err == nil:
		w.data, w.version = node.Data, node.Stat.Version
		return w.stay(ctx, w.wait)
	case !errors.Is(err, recipes.ErrRemoved):
		return nil, l.failed(err)
	}
	holding := l.at(me.holdingName())
	if _, err := line.ResumeWaiter(ctx, l.session, holding); err != nil {
		return nil, l.failed(err)
	}
	w.claimed = true
	w.tell(recipes.UnknownPosition)
	return w.stay(ctx, func(ctx context.Context) (*line.Hold, error) { return w.grant(ctx, holding) })
}

// Resume is line.Line.Resume for a holding znode. A writer that has claimed, and waited
// for readers when its process ended, was granted nothing.
func (l *priorityLock) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.PriorityHold, error) {
	me, ok := l.contender(znode)
	if !ok || !me.holds {
		return nil, l.failed(fmt.Errorf("resume: %w: %q is not a holder's znode", recipes.ErrInvalid, znode))
	}
	names, err := l.session.Children(ctx, l.path)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return nil, l.failed(err)
	}
	for _, other := range ranked(names, "") {
		if me.mode == recipes.Writing && other.holds && other.name != me.name {
			return nil, l.failed(fmt.Errorf("resume: %w: %s holds, too", recipes.ErrNotHeld, other.name))
		}
	}
	if _, err := line.ResumeHeld(ctx, l.session, znode, token); err != nil {
		return nil, l.failed(err)
	}
	return &priorityHold{Hold: l.line.Inspected(line.Resumed(l.session, znode, token, l.asked())), lock: l, mode: me.mode}, nil
}

// claimRemoved is the error after another client has deleted the holding znode:
// another writer may have claimed since.
func (w *waiter) claimRemoved() error {
	return fmt.Errorf("claimed: %w: %s", recipes.ErrRemoved, w.lock.at(w.me.holdingName()))
}

// awaitReaders waits, after a writer's claim, for the readers that have claimed
// between the writer's last look and its claim: they were granted first. No
// contender can come after them. One that reads the path's znode after the claim
// finds the writer among the holders; the claim of one that has read it before is
// refused.
func (w *waiter) awaitReaders(ctx context.Context) error {
	l := w.lock
	for {
		disconnected, err := l.session.Connected(ctx)
		if err != nil {
			return err
		}
		names, err := l.session.Children(ctx, l.path)
		if err != nil && !errors.Is(err, recipes.ErrNoNode) {
			return err
		}
		if !slices.Contains(names, w.me.holdingName()) {
			return w.claimRemoved()
		}
		others := slices.DeleteFunc(ranked(names, ""), func(c contender) bool {
			return !c.holds || c.name == w.me.holdingName()
		})
		if len(others) == 0 {
			return nil
		}
		if w.try {
			return fmt.Errorf("%w: %s", recipes.ErrContended, l.at(others[0].name))
		}
		if l.cfg.Ask {
			if err := w.ask(ctx, others); err != nil {
				return err
			}
		}
		w.armed.Retain([]line.Entry{{Name: others[0].name}}, disconnected)
		_, _, err = w.armed.Arm(ctx, l.session, l.path, others[0].name)
		if errors.Is(err, recipes.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		if err := w.armed.Wait(ctx, l.session, "waiting for "+l.path, disconnected); err != nil {
			return err
		}
	}
}
