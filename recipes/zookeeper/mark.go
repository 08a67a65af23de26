package zookeeper

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/session"
)

// setData sets a znode's data if its version is that one.
func setData(ctx context.Context, s *session.Session, path string, data []byte, version int32) error {
	var t session.Txn
	t.Set(path, data, version)
	return s.Commit(ctx, t)
}

// retry reports whether a change that failed like this is to be looked at, and
// perhaps made, again: somebody else was faster, or nobody knows.
func retry(ctx context.Context, s *session.Session, err error) bool {
	if ctx.Err() != nil || s.Err() != nil {
		return false
	}
	return errors.Is(err, recipes.ErrBadVersion) || errors.Is(err, recipes.ErrUnknownOutcome)
}
