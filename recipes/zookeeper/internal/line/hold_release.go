package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Release implements recipes.Hold.
func (h *Hold) Release(ctx context.Context) error {
	return h.removal.Run(ctx, "release "+h.path, func(settle func(error)) { h.giveBack(ctx, settle) })
}

// giveBack deletes the contender's znode. If the deletion takes longer, it continues in the
// background.
func (h *Hold) giveBack(ctx context.Context, settle func(error)) {
	lost := h.beginRelease()
	// If a hold has ended while its znode exists, the znode must still be deleted.
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
	settled := func(err error) { settle(h.afterDeletion(lost, err)) }
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
		rest(nil) // the session has ended, so this does not wait
	}
}

// beginRelease ends the hold, or returns why it has already ended.
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

// afterDeletion deletes the attached znodes and returns the result of the release. err is the result of
// deleting the contender's znode. lost is why the hold had already ended, or nil. The attached
// znodes must be deleted last: as long as the contender's znode exists, a transaction that
// checks it may add to them.
func (h *Hold) afterDeletion(lost, err error) error {
	if err != nil && !session.IsGone(err) {
		return fmt.Errorf("release: %w", err) // the znode still exists
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
