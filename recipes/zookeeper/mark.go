package zookeeper

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
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
	return unsure(err) && ctx.Err() == nil && s.Err() == nil
}

func unsure(err error) bool {
	return errors.Is(err, recipes.ErrBadVersion) || errors.Is(err, recipes.ErrUnknownOutcome)
}

// settled is the error of a change that may be made twice, or that is undone,
// when it was given up, so that retry reports false: nothing about it is unknown
// to the caller that he would have to find out, so the error says only why it was
// given up.
func settled(ctx context.Context, s *session.Session, what string, err error) error {
	if unsure(err) && (ctx.Err() != nil || s.Err() != nil) {
		return s.Interrupted(what, ctx) // or lost
	}
	return err
}
