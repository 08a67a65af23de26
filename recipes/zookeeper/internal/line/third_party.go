package line

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Inspected inspects the path for third-party contenders while the grant is held. A third-party
// contender that joins after the grant does not check for ours, and nothing keeps it out. The
// grant then ends with ErrForeign.
//
// Two listings in a row, a tenth of the session timeout apart, must find the same third-party
// contender. A contender of another recipe of this library checks before it waits, and leaves.
// It must not end a hold in that time.
func (l *Line) Inspected(h *Hold) *Hold {
	var listing atomic.Bool
	suspect := "" // the znode that the last listing has found; only the listing goroutine uses it
	list := func(ctx context.Context) {
		defer listing.Store(false)
		names, parent, err := h.session.List(ctx, l.Path)
		if err != nil {
			return // the next inspection tries again
		}
		var met *recipes.ForeignError
		switch err := l.Foreign(ctx, names); {
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
