package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// confirm asks the leader whether the contender's znode is there, beside a grant that
// was made without that answer, and ends the grant if it is not. The question is asked
// again on the next connection where the first is lost, and when the server throttles.
// Until then the session's clock bounds the grant, as it bounds every other.
func (g *Grant) confirm(ctx context.Context) {
	node, err := session.Insist(ctx, g.session, func() (session.Node, error) { return g.session.GetSynced(ctx, g.path) })
	switch {
	case errors.Is(err, recipes.ErrNoNode), err == nil && recipes.Token(node.Stat.Czxid) != g.token:
		g.Removed() // or given back since, which is known
	case err != nil && ctx.Err() == nil:
		g.end(fmt.Errorf("%w: %w %s: %w", recipes.ErrNotHeld, session.ErrUnwatched, g.path, err))
	}
}

// unconfirmed has the leader asked beside a grant.
func unconfirmed(g *Grant, err error) (*Grant, error) {
	if err == nil {
		g.session.Background(g.confirm)
	}
	return g, err
}
