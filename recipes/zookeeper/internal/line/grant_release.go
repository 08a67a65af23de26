package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Release gives the turn to the next in line, as recipes.Hold documents.
func (g *Grant) Release(ctx context.Context) error {
	first := false
	g.release.Do(func() { first = true })
	if first {
		g.giveBack(ctx)
	}
	select {
	case <-g.released:
		return g.result
	case <-ctx.Done():
		return fmt.Errorf("release %s: %w", g.path, ctx.Err())
	}
}

// errUnwatched ends a grant whose node may be there. It is deleted by Release, and
// not before: the holder may not have stopped yet.
var errUnwatched = errors.New("cannot watch")

// giveBack deletes the contender's znode. What it cannot wait for goes on without it.
func (g *Grant) giveBack(ctx context.Context) {
	if !g.end(recipes.ErrReleased) {
		g.mu.Lock()
		g.result = g.reason
		g.mu.Unlock()
		if errors.Is(g.result, errUnwatched) {
			g.delete()
			g.deleteAttached()
		}
		close(g.released)
		return
	}
	var deletion <-chan error
	if g.place != nil {
		deletion = g.session.HandOver(ctx, g.place.Place)
	} else {
		deletion = g.session.Delete(g.path)
	}
	select {
	case err := <-deletion:
		if !g.hasAttached() {
			g.given(err)
			return
		}
		again := make(chan error, 1)
		again <- err
		deletion = again
	default:
	}
	rest := func(context.Context) { g.given(<-deletion) }
	if !g.session.Background(rest) {
		rest(nil) // the session is over: this does not wait
	}
}

// delete starts the deletion of the contender's znode.
func (g *Grant) delete() <-chan error {
	if g.place != nil {
		return g.session.DeletePlace(g.place.Place)
	}
	return g.session.Delete(g.path)
}

func (g *Grant) hasAttached() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.attached) > 0
}

// given deletes what goes with the contender's znode, and ends the release. err is
// how the deletion of that znode has ended. Nothing may be deleted before: as long
// as the znode exists, a transaction that checks it could add to what goes with it.
func (g *Grant) given(err error) {
	defer close(g.released)
	for _, deletion := range g.deleteAttached() {
		<-deletion
	}
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		g.result = fmt.Errorf("release: %w: %s", recipes.ErrRemoved, g.path)
	case errors.Is(err, recipes.ErrSessionLost):
		g.result = fmt.Errorf("release: %w: %w", recipes.ErrNotHeld, err)
	case err != nil:
		g.result = fmt.Errorf("release: %w", err)
	}
}
