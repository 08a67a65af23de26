package znode

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Await calls read until it returns no events, or an error other than ErrReadAgain. If read
// returns events, Await waits for one of them, or for the end of the connection, because events
// may be missed during a reconnect. Then it calls read again. After ErrReadAgain, it calls read
// again at once. Before each call it waits until the session is connected.
func Await(ctx context.Context, s *session.Session, what string, read func() (events []<-chan struct{}, err error)) error {
	for {
		disconnected, err := s.Connected(ctx)
		if err != nil {
			return err
		}
		events, err := read()
		if errors.Is(err, ErrReadAgain) {
			continue
		}
		if err != nil || len(events) == 0 {
			return err
		}
		if err := s.Wait(ctx, what, append(events, disconnected)...); err != nil {
			return err
		}
	}
}

// Events returns the events of these watches, for Await.
func Events(watches ...*session.Watch) []<-chan struct{} {
	events := make([]<-chan struct{}, 0, len(watches)+1) // Await appends the end of the connection
	for _, w := range watches {
		events = append(events, w.Fired())
	}
	return events
}

// ListW lists a znode's children and returns its record, with a watch. If the znode does not exist,
// the list is empty, and the watch is for its creation.
func ListW(ctx context.Context, s *session.Session, path string) (names []string, parent session.Stat, changed *session.Watch, err error) {
	names, parent, changed, err = s.ListW(ctx, path)
	if errors.Is(err, recipes.ErrNoNode) {
		var exists bool
		if exists, changed, err = s.ExistsW(ctx, path); err == nil && exists {
			err = ErrReadAgain
		}
	}
	return names, parent, changed, err
}

// Retry calls change, which reads and then writes. It calls change again after ErrReadAgain, and
// after an error for which TryAgain reports true. The change must be harmless to repeat. If ctx is
// done or the session is lost, the error does not match ErrUnknownOutcome: see GivenUp.
func Retry(ctx context.Context, s *session.Session, what string, change func() error) error {
	for {
		if err := Again(ctx, s, what, change()); !errors.Is(err, ErrReadAgain) {
			return err
		}
	}
}

// Again returns ErrReadAgain if TryAgain reports true for the error of a change, and
// otherwise the error of GivenUp.
func Again(ctx context.Context, s *session.Session, what string, err error) error {
	if TryAgain(ctx, s, err) {
		return ErrReadAgain
	}
	return GivenUp(ctx, s, what, err)
}

// Listed returns ErrReadAgain if err matches ErrNoNode, because the znode was deleted after
// it was read or listed. It returns any other error as it is.
func Listed(err error) error {
	if errors.Is(err, recipes.ErrNoNode) {
		return ErrReadAgain
	}
	return err
}

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
