package line

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// inspected has the line's path inspected for third-party contenders while the grant is
// held. One that joins after the grant does not look for ours, and nothing can keep it
// out. The grant ends then, with ErrForeign, within a tenth of the session timeout and
// the time that the requests take.
func (l *Line) inspected(g *Grant) *Grant {
	return InspectedBy(g, l.Busy, l.Path, l.kindAt(), l.foreign)
}

// InspectedBy is inspected for a recipe that does not wait in a Line: foreign returns
// the error for the names of the path's children. kindAt names the recipe and the path
// for busy.
func InspectedBy(g *Grant, busy *Busy, path, kindAt string, foreign func(context.Context, []string) error) *Grant {
	var listing atomic.Bool
	list := func(ctx context.Context) {
		defer listing.Store(false)
		names, parent, err := g.session.List(ctx, path)
		if err != nil {
			return // the next inspection tries again
		}
		switch err := foreign(ctx, names); {
		case errors.Is(err, recipes.ErrForeign):
			g.end(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
		case err == nil:
			busy.clean(kindAt, names, parent)
		}
	}
	stop := g.session.Inspect(path, func(parent session.Stat) {
		if !busy.unchanged(kindAt, parent) && listing.CompareAndSwap(false, true) && !g.session.Background(list) {
			listing.Store(false)
		}
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason != nil {
		stop()
	} else {
		g.inspects = stop
	}
	return g
}
