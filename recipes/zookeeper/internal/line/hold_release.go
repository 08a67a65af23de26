package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Release gives the turn to the next in line, as recipes.Hold documents.
func (h *Hold) Release(ctx context.Context) error {
	return h.removal.Run(ctx, "release "+h.path, func(settle func(error)) { h.giveBack(ctx, settle) })
}

// giveBack deletes the contender's znode. What it cannot wait for goes on without it.
func (h *Hold) giveBack(ctx context.Context, settle func(error)) {
	lost := h.beginRelease()
	// A hold that ended although its znode exists still has the znode to delete.
	if lost != nil && !errors.Is(lost, session.ErrUnwatched) && !errors.Is(lost, recipes.ErrForeign) {
		settle(lost)
		return
	}
	var deletion <-chan error
	switch {
	case h.bare == nil:
		deletion = h.session.Delete(h.path)
	case lost != nil:
		deletion = h.session.DeleteBare(h.bare.BareZnode)
	default:
		deletion = h.session.Handoff(ctx, h.bare.BareZnode)
	}
	settled := func(err error) { settle(h.given(lost, err)) }
	select {
	case err := <-deletion:
		if !h.hasAttached() {
			settled(err)
			return
		}
		again := make(chan error, 1)
		again <- err
		deletion = again
	default:
	}
	rest := func(context.Context) { settled(<-deletion) }
	if !h.session.Background(rest) {
		rest(nil) // the session is over: this does not wait
	}
}

// beginRelease ends the grant, or returns why something else has ended it before.
func (h *Hold) beginRelease() (lost error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endLocked(recipes.ErrReleased) {
		h.releasing = true
	}
	if h.releasing {
		return nil
	}
	return h.reason
}

func (h *Hold) hasAttached() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.attached) > 0
}

// given deletes what goes with the contender's znode, and returns the result of the
// release. err is how the deletion of that znode has ended. lost is why the grant had
// ended before, if it had. Nothing may be deleted before: as long as the znode
// exists, a transaction that checks it could add to what goes with it.
func (h *Hold) given(lost, err error) error {
	if err != nil && !session.IsGone(err) {
		return fmt.Errorf("release: %w", err) // the znode is still there
	}
	for _, deletion := range h.deleteAttached() {
		<-deletion
	}
	switch {
	case lost != nil:
		return lost
	case errors.Is(err, recipes.ErrNoNode):
		return fmt.Errorf("release: %w: %s", recipes.ErrRemoved, h.path)
	case errors.Is(err, recipes.ErrSessionLost):
		return fmt.Errorf("release: %w: %w", recipes.ErrNotHeld, err)
	}
	return nil
}
