package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Revoked is closed when the contender was asked to give way. Like Done it
// watches only from the first call on.
func (h *Hold) Revoked() <-chan struct{} {
	h.Done()
	return h.revoked
}

// noteRevocation closes revoked if the data of the contender's znode asks for that. It is called by one goroutine.
func (h *Hold) noteRevocation(data []byte) {
	if h.asked != nil && !h.wasAsked() && h.asked(data) {
		close(h.revoked)
	}
}

func (h *Hold) wasAsked() bool {
	select {
	case <-h.revoked:
		return true
	default:
		return false
	}
}

// watchOwn waits for the deletion of the contender's znode by somebody else. Like every
// wait it looks again whenever the connection was lost.
func (h *Hold) watchOwn(ctx context.Context) {
	for {
		disconnected, err := h.session.Connected(ctx)
		if err != nil {
			return
		}
		node, watch, err := h.look(ctx)
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
				// Its removal would not be noticed, so it cannot be relied on.
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

// look reads the contender's znode, if there is something to read, and watches it.
func (h *Hold) look(ctx context.Context) (session.Node, *session.Watch, error) {
	if h.bare == nil {
		return h.session.GetW(ctx, h.path)
	}
	watch, err := h.bare.watch(ctx)
	return session.Node{}, watch, err
}
