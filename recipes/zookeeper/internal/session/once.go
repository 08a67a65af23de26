package session

import (
	"context"
	"errors"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// once sends a write at most once. If the connection is lost, or ctx ends, after
// it was sent, the error matches ErrUnknownOutcome.
func once[T any](ctx context.Context, s *Session, what, path string, f func(conn.Sender) (T, error)) (T, error) {
	var zero T
	connections := 0
	for {
		var err error
		if connections, err = s.ready(ctx, what+" "+path, connections); err != nil {
			return zero, err
		}
		value, err := call(ctx, s, f)
		switch {
		case err == nil:
			return value, nil
		case errors.Is(err, conn.ErrNotSent):
			continue
		case errors.Is(err, errMoved):
			return zero, err
		case conn.Lost(err), ctx.Err() != nil, s.Err() != nil:
			return zero, s.unknown(ctx, what+" "+path, err)
		}
		return zero, answer(what, path, err)
	}
}

// Fits reports, as an ErrTooLarge, that a transaction with a receipt that gives the
// znode this data could not be sent.
func (s *Session) Fits(path string, data []byte) error {
	const receipt = 4 * packetSlack // and the transaction around the two
	return s.room(path, data, receipt)
}

// SetOnce replaces the data of a znode if it has that version (-1: any), and
// returns its new record. It is sent at most once, as Commit is.
func (s *Session) SetOnce(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	if err := s.fits(path, data); err != nil {
		return Stat{}, err
	}
	return once(ctx, s, "set", path, func(r conn.Sender) (Stat, error) {
		return r.Set(s.full(path), data, version)
	})
}

// DeleteOnce deletes a znode if it has that version (-1: any). It is sent at
// most once, as Commit is.
func (s *Session) DeleteOnce(ctx context.Context, path string, version int32) error {
	_, err := once(ctx, s, "delete", path, func(r conn.Sender) (struct{}, error) {
		return struct{}{}, r.Delete(s.full(path), version)
	})
	return err
}

// Create creates a persistent znode, and what is missing above it. After a lost
// reply it looks. The creation is sent again only if it is known not to have
// happened, because no child of the parent has come or gone since. Otherwise the
// error matches ErrUnknownOutcome: either the node is there, and nobody can tell
// who made it, or it may have been made and deleted again by another.
// ErrNodeExists says that another made it.
func (s *Session) Create(ctx context.Context, path string, data []byte) error {
	if err := s.fits(path, data); err != nil {
		return err
	}
	parent := gopath.Dir(path)
	for {
		before, err := s.Stat(ctx, parent)
		if errors.Is(err, recipes.ErrNoNode) {
			if err := s.Ensure(ctx, parent); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		_, err = once(ctx, s, "create", path, func(r conn.Sender) (string, error) {
			return r.Create(s.full(path), data, conn.Persistent, s.acl)
		})
		switch {
		case errors.Is(err, recipes.ErrNoNode):
			continue // the parent, an empty container, was reaped meanwhile
		case !s.Unsettled(ctx, err):
			return s.Because(ctx, err)
		}
		if err := s.Sync(ctx, parent); err != nil {
			return fmt.Errorf("create %s: %w: %w", path, recipes.ErrUnknownOutcome, err)
		}
		after, lookErr := s.Stat(ctx, parent)
		if lookErr != nil || after.Pzxid != before.Pzxid || after.Czxid != before.Czxid {
			return s.Because(ctx, err)
		}
	}
}
