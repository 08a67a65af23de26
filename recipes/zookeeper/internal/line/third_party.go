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
// out. The grant ends then, with ErrForeign.
//
// A third-party contender has to be found by two listings in a row, a tenth of the session
// timeout apart. A contender of another recipe of this library looks before it waits, and
// leaves. It must not end a hold in passing.
func (l *Line) Inspected(h *Hold) *Hold {
	var listing atomic.Bool
	suspect := "" // the znode that the last listing has found; of the goroutine that lists
	list := func(ctx context.Context) {
		defer listing.Store(false)
		names, parent, err := h.session.List(ctx, l.Path)
		if err != nil {
			return // the next inspection tries again
		}
		var met *recipes.ForeignError
		switch err := l.foreign(ctx, names); {
		case errors.As(err, &met) && met.Znode == suspect:
			h.end(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
		case met != nil:
			suspect = met.Znode
		case err == nil:
			suspect = ""
			l.Busy.clean(l.kindAt(), names, parent)
		}
	}
	stop := h.session.Inspect(l.Path, func(parent session.Stat) {
		if !l.Busy.unchanged(l.kindAt(), parent) && listing.CompareAndSwap(false, true) && !h.session.Background(list) {
			listing.Store(false)
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason != nil {
		stop()
	} else {
		h.inspects = stop
	}
	return h
}
