package zookeeper

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// caughtUp has look read below path, and decide by what it finds. Where it refuses
// it looks again after a sync, for the server may lag behind what the caller has
// been told by others: that a transaction has begun, that a key has a revision.
func caughtUp[T any](ctx context.Context, s *session.Session, path string, look func() (T, error)) (T, error) {
	found, err := look()
	if err == nil {
		return found, nil
	}
	if syncErr := s.Sync(ctx, path); syncErr != nil && !errors.Is(syncErr, recipes.ErrNoNode) {
		return found, syncErr
	}
	return look()
}
