package znode

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// ReadSynced returns what read finds at or below path. If read fails, ReadSynced syncs and
// calls it again. The server may lag behind what the caller has learned from other clients,
// such as that a transaction has begun, or the revision of a key.
func ReadSynced[T any](ctx context.Context, s *session.Session, path string, read func() (T, error)) (T, error) {
	found, err := read()
	if err == nil {
		return found, nil
	}
	if syncErr := s.Sync(ctx, path); syncErr != nil {
		return found, syncErr
	}
	return read()
}
