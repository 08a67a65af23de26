package zookeeper

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Resume is Open for a session that another process has let go.
func Resume(ctx context.Context, cfg recipes.SessionConfig, ticket session.Ticket) (recipes.Session, error) {
	s, err := session.Resume(ctx, cfg, nil, ticket)
	if err != nil {
		return nil, err
	}
	return withRecipes(s), nil
}
