package znode

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// SetData sets a znode's data if its version is that one. It is sent at most once.
func SetData(ctx context.Context, s *session.Session, path string, data []byte, version int32) error {
	var t session.Txn
	t.Set(path, data, version)
	return s.Commit(ctx, t)
}

// TryAgain reports whether the caller should read again after a change that
// failed with err, and perhaps make the change again: another client was faster,
// or the outcome is unknown.
func TryAgain(ctx context.Context, s *session.Session, err error) bool {
	return outrunOrUnknown(err) && ctx.Err() == nil && s.Err() == nil
}

func outrunOrUnknown(err error) bool {
	return errors.Is(err, recipes.ErrBadVersion) || errors.Is(err, recipes.ErrUnknownOutcome)
}

// GivenUp returns the error of a change for which TryAgain has reported false. It is
// for changes that are harmless to repeat, or that the caller undoes. It drops the
// unknown outcome from err if ctx has ended or the session is lost: the caller has
// nothing to find out. The error then says only why the change was given up.
func GivenUp(ctx context.Context, s *session.Session, what string, err error) error {
	if outrunOrUnknown(err) && (ctx.Err() != nil || s.Err() != nil) {
		return s.Interrupted(what, ctx) // or lost
	}
	return err
}
