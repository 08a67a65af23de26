package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Release gives the turn to the next in line, as recipes.Hold documents.
func (g *Grant) Release(ctx context.Context) error {
	return g.removal.Run(ctx, "release "+g.path, func(settle func(error)) { g.giveBack(ctx, settle) })
}

// giveBack deletes the contender's znode. What it cannot wait for goes on without it.
func (g *Grant) giveBack(ctx context.Context, settle func(error)) {
	lost := g.beginRelease()
	// A hold that ended although its znode exists still has the znode to delete.
	if lost != nil && !errors.Is(lost, session.ErrUnwatched) && !errors.Is(lost, recipes.ErrForeign) {
		settle(lost)
		return
	}
	var deletion <-chan error
	switch {
	case g.bare == nil:
		deletion = g.session.Delete(g.path)
	case lost != nil:
		deletion = g.session.DeleteBare(g.bare.BareZnode)
	default:
		deletion = g.session.Handoff(ctx, g.bare.BareZnode)
	}
	settled := func(err error) { settle(g.given(lost, err)) }
	select {
	case err := <-deletion:
		if !g.hasAttached() {
			settled(err)
			return
		}
		again := make(chan error, 1)
		again <- err
		deletion = again
	default:
	}
	rest := func(context.Context) { settled(<-deletion) }
	if !g.session.Background(rest) {
		rest(nil) // the session is over: this does not wait
	}
}

// beginRelease ends the grant, or returns why something else has ended it before.
func (g *Grant) beginRelease() (lost error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.endLocked(recipes.ErrReleased) {
		g.releasing = true
	}
	if g.releasing {
		return nil
	}
	return g.reason
}

func (g *Grant) hasAttached() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.attached) > 0
}

// given deletes what goes with the contender's znode, and returns the result of the
// release. err is how the deletion of that znode has ended. lost is why the grant had
// ended before, if it had. Nothing may be deleted before: as long as the znode
// exists, a transaction that checks it could add to what goes with it.
func (g *Grant) given(lost, err error) error {
	if err != nil && !session.IsGone(err) {
		return fmt.Errorf("release: %w", err) // the znode is still there
	}
	for _, deletion := range g.deleteAttached() {
		<-deletion
	}
	switch {
	case lost != nil:
		return lost
	case errors.Is(err, recipes.ErrNoNode):
		return fmt.Errorf("release: %w: %s", recipes.ErrRemoved, g.path)
	case errors.Is(err, recipes.ErrSessionLost):
		return fmt.Errorf("release: %w: %w", recipes.ErrNotHeld, err)
	}
	return nil
}
