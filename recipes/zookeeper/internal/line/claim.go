package line

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// NewGrant is the grant of a znode that was created without standing in line. It
// must be this session's, and its name must be used once.
func NewGrant(ctx context.Context, s *session.Session, path string, token recipes.Token) (*Grant, error) {
	return NewRevocable(ctx, s, path, token, nil)
}

// Conclude ends the grant, as Release does, for a holder who then deletes the
// znode by a transaction of his own. It reports whether the grant stood.
func (g *Grant) Conclude() bool { return g.end(recipes.ErrReleased) }
