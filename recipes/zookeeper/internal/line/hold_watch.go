package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Revoked is closed when another client has asked the holder to give way. Like Done, it watches
// from its first call on.
func (h *Hold) Revoked() <-chan struct{} {
	h.Done()
	return h.revoked
}

// noteRevocation closes revoked if the data of the contender's znode ask for that. Only one
// goroutine calls it.
func (h *Hold) noteRevocation(data []byte) {
	if h.asked != nil && !h.wasAsked() && h.asked(data) {
		close(h.revoked)
	}
}

func (h *Hold) wasAsked() bool { return session.Happened(h.revoked) }

// watchOwn ends the hold when another client deletes the contender's znode. Like every wait, it
// reads again whenever the connection was lost.
func (h *Hold) watchOwn(ctx context.Context) {
	for {
		disconnected, err := h.session.Connected(ctx)
		if err != nil {
			return
		}
		node, watch, err := h.watch(ctx)
		if h.session.Throttled(ctx, err) {
			continue
		}
		if errors.Is(err, recipes.ErrNoNode) {
			h.endYielding()
			h.Removed()
			return
		}
		if err != nil {
			if ctx.Err() == nil {
				// A deletion would not be noticed, so the hold is not safe.
				h.end(fmt.Errorf("%w: %w %s: %w", recipes.ErrNotHeld, session.ErrUnwatched, h.path, err))
			}
			return
		}
		h.noteRevocation(node.Data)
		select {
		case <-watch.Fired():
		case <-disconnected:
		case <-h.lost:
			return
		case <-ctx.Done():
			return
		}
	}
}

// watch watches the contender's znode, and reads it unless it is a bare znode.
func (h *Hold) watch(ctx context.Context) (session.Node, *session.Watch, error) {
	if h.bare == nil {
		return h.session.GetW(ctx, h.path)
	}
	watch, err := h.bare.watch(ctx)
	return session.Node{}, watch, err
}
