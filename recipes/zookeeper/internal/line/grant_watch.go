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
func (g *Grant) Revoked() <-chan struct{} {
	g.Done()
	return g.revoked
}

// noteRequest closes revoked if the data of the contender's znode asks for that. It is called by one goroutine.
func (g *Grant) noteRequest(data []byte) {
	if g.asked != nil && !g.wasAsked() && g.asked(data) {
		close(g.revoked)
	}
}

func (g *Grant) wasAsked() bool {
	select {
	case <-g.revoked:
		return true
	default:
		return false
	}
}

// watchOwn waits for the deletion of the contender's znode by somebody else. Like every
// wait it looks again whenever the connection was lost.
func (g *Grant) watchOwn(ctx context.Context) {
	for {
		disconnected, err := g.session.Connected(ctx)
		if err != nil {
			return
		}
		node, watch, err := g.look(ctx)
		if g.session.Throttled(ctx, err) {
			continue
		}
		if errors.Is(err, recipes.ErrNoNode) {
			g.endYielding()
			g.Removed()
			return
		}
		if err != nil {
			if ctx.Err() == nil {
				// Its removal would not be noticed, so it cannot be relied on.
				g.end(fmt.Errorf("%w: %w %s: %w", recipes.ErrNotHeld, session.ErrUnwatched, g.path, err))
			}
			return
		}
		g.noteRequest(node.Data)
		select {
		case <-watch.Fired():
		case <-disconnected:
		case <-g.lost:
			return
		case <-ctx.Done():
			return
		}
	}
}

// look reads the contender's znode, if there is something to read, and watches it.
func (g *Grant) look(ctx context.Context) (session.Node, *session.Watch, error) {
	if g.bare == nil {
		return g.session.GetW(ctx, g.path)
	}
	watch, err := g.bare.watch(ctx)
	return session.Node{}, watch, err
}
