package line

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Inspected has the line's path inspected for third-party contenders while the grant is
// held. One that joins after the grant does not look for ours, and nothing can keep it
// out. The grant ends then, with ErrForeign, within a tenth of the session timeout and
// the time that the requests take.
func (l *Line) Inspected(g *Grant) *Grant {
	var listing atomic.Bool
	list := func(ctx context.Context) {
		defer listing.Store(false)
		names, parent, err := g.session.List(ctx, l.Path)
		if err != nil {
			return // the next inspection tries again
		}
		switch err := l.foreign(ctx, names); {
		case errors.Is(err, recipes.ErrForeign):
			g.end(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
		case err == nil:
			l.Busy.clean(l.kindAt(), names, parent)
		}
	}
	stop := g.session.Inspect(l.Path, func(parent session.Stat) {
		if !l.Busy.unchanged(l.kindAt(), parent) && listing.CompareAndSwap(false, true) && !g.session.Background(list) {
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
