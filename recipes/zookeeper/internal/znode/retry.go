package znode

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// SetData sets a znode's data, conditional on the version. It sends the request at most once.
func SetData(ctx context.Context, s *session.Session, path string, data []byte, version int32) error {
	var t session.Txn
	t.Set(path, data, version)
	return s.Commit(ctx, t)
}

// TryAgain reports whether, after a change has failed with err, the caller should read again
// and may repeat the change: another client was faster, or the outcome is unknown.
func TryAgain(ctx context.Context, s *session.Session, err error) bool {
	return outrunOrUnknown(err) && ctx.Err() == nil && s.Err() == nil
}

func outrunOrUnknown(err error) bool {
	return errors.Is(err, recipes.ErrBadVersion) || errors.Is(err, recipes.ErrUnknownOutcome)
}

// GivenUp returns the error of a change after TryAgain has returned false. It is for changes
// that the caller may repeat or undoes. If ctx is done or the session is lost, it drops the
// unknown outcome from err, because no reconciliation is needed. The error then only says why
// the change was given up.
func GivenUp(ctx context.Context, s *session.Session, what string, err error) error {
	if outrunOrUnknown(err) && (ctx.Err() != nil || s.Err() != nil) {
		return s.Interrupted(what, ctx) // or the loss
	}
	return err
}
