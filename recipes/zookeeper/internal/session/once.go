package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// once sends a write at most once. If the connection ends or ctx is done after it was sent, the
// error matches ErrUnknownOutcome.
func once[T any](ctx context.Context, s *Session, what, path string, f func() (T, error)) (T, error) {
	var zero T
	connections := 0
	for {
		var err error
		if connections, _, err = s.connectedAfter(ctx, connections); err != nil {
			return zero, err
		}
		if ctx.Err() != nil { // send no write whose outcome could not be learned
			return zero, s.Interrupted(what+" "+path, ctx)
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
			return zero, fmt.Errorf("%s %s: %w: %w", what, path, recipes.ErrUnknownOutcome, cmp.Or(s.reason(ctx), err))
		}
		return zero, answer(what, path, err)
	}
}

// Fits returns an ErrTooLarge if a transaction with a receipt that sets this data does not fit
// into a packet.
func (s *Session) Fits(path string, data []byte) error {
	const receipt = 4 * packetSlack // includes the transaction around both operations
	return s.fits(path, data, receipt)
}

// SetOnce replaces the data of a znode that has the version (-1: any), and returns its new
// record. Like Commit, it sends the request at most once.
func (s *Session) SetOnce(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	if err := s.fits(path, data, packetSlack); err != nil {
		return Stat{}, err
	}
	return once(ctx, s, "set", path, func() (Stat, error) {
		return conn.Ask(s.wire.Current(), conn.Set(s.full(path), data, version), conn.Reply.Stat)
	})
}

// DeleteOnce deletes a znode that has the version (-1: any). Like Commit, it sends the request
// at most once.
func (s *Session) DeleteOnce(ctx context.Context, path string, version int32) error {
	_, err := once(ctx, s, "delete", path, func() (struct{}, error) {
		return conn.Ask(s.wire.Current(), conn.Delete(s.full(path), version), conn.Reply.Nothing)
	})
	return err
}

// Create creates a persistent znode and its missing parents. After a lost reply it sends the
// creation again only if it is known not to have happened, because no child of the parent was
// created or deleted since. Otherwise the error matches ErrUnknownOutcome: the znode exists and
// may be another client's, or this call created it and another client has deleted it.
// ErrNodeExists means that another client created it.
func (s *Session) Create(ctx context.Context, path string, data []byte) error {
	if err := s.fits(path, data, packetSlack); err != nil {
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
		_, err = once(ctx, s, "create", path, func() (string, error) {
			return conn.Ask(s.wire.Current(), conn.Create(s.full(path), data, conn.Persistent, s.acl), conn.Reply.Path)
		})
		switch {
		case errors.Is(err, recipes.ErrNoNode):
			continue // the parent was an empty container, which the server has deleted
		case !s.Unsettled(ctx, err):
			return s.Because(ctx, err)
		}
		if err := s.Sync(ctx, parent); err != nil {
			return fmt.Errorf("create %s: %w: %w", path, recipes.ErrUnknownOutcome, err)
		}
		after, statErr := s.Stat(ctx, parent)
		if statErr != nil || after.Pzxid != before.Pzxid || after.Czxid != before.Czxid {
			return s.Because(ctx, err)
		}
	}
}
