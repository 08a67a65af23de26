package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Delete deletes a znode that this session created with protection. Its name is
// used once, so nobody else's node can be hit however often this is sent.
//
// It does not wait. The channel gives nil when the node is known to be gone. It gives
// ErrNoNode if the node was gone before anything of this call reached the server, and
// the reason if the session was lost. The deletion goes on until its outcome is
// known or the session is over, also if nobody reads the channel.
//
// Of several znodes each is deleted when the outcome of the one before is known. The
// channel tells of the last.
func (s *Session) Delete(paths ...string) <-chan error {
	return s.told(func(life context.Context) (err error) {
		for _, path := range paths {
			err = s.deleteUntilKnown(life, path)
		}
		return err
	})
}

// told runs f as Background does, and tells its result, or why it does not run.
func (s *Session) told(f func(life context.Context) error) <-chan error {
	done := make(chan error, 1)
	if !s.Background(func(life context.Context) { done <- f(life) }) {
		done <- s.Err()
	}
	return done
}

func (s *Session) deleteUntilKnown(life context.Context, path string) error {
	sent := false
	_, err := Insist(life, s, func() (struct{}, error) {
		return readWith(life, s, "delete", path, func(r conn.Sender) (struct{}, error) {
			err := r.Delete(s.full(path), -1)
			if sent && errors.Is(err, recipes.ErrNoNode) {
				err = nil // the attempt whose reply was lost has done it
			}
			sent = sent || conn.Lost(err) && !errors.Is(err, conn.ErrNotSent)
			return struct{}{}, err
		})
	})
	if err != nil && !IsGone(err) {
		s.log.Error("cannot delete own znode; it goes with the session", "path", path, "error", err)
	}
	return err
}

// DeleteOwned deletes an ephemeral znode that this session has made, by CreateNamed or
// with protection. The terms are those of Delete. stat is the last record of the node
// that is known. A node of the same name that was created later is left alone.
//
// ZooKeeper cannot compare a czxid when it deletes. So the deletion names the
// version, and before it is sent again the node is looked at. One case is left:
// another client has deleted the node, and somebody has created it again with as
// many changes, while one request was on its way.
func (s *Session) DeleteOwned(path string, stat Stat) <-chan error {
	return s.told(func(life context.Context) error { return s.deleteOwned(life, path, stat) })
}

func (s *Session) deleteOwned(life context.Context, path string, stat Stat) error {
	version, sent := stat.Version, false
	for {
		_, err := Insist(life, s, func() (struct{}, error) { return struct{}{}, s.DeleteOnce(life, path, version) })
		switch {
		case err == nil:
			return nil
		case s.Err() != nil:
			return s.Err()
		case errors.Is(err, recipes.ErrNoNode):
			if sent {
				return nil // the attempt whose reply was lost has done it
			}
			return err
		case !errors.Is(err, recipes.ErrUnknownOutcome) && !errors.Is(err, recipes.ErrBadVersion):
			s.log.Error("cannot delete own znode; it goes with the session", "path", path, "error", err)
			return err
		}
		sent = sent || errors.Is(err, recipes.ErrUnknownOutcome)
		now, err := s.again(life, path, stat)
		switch {
		case s.Err() != nil:
			return s.Err()
		case sent && errors.Is(err, recipes.ErrNoNode):
			return nil
		case err != nil:
			return err
		}
		version = now.Version
	}
}

// again reads the record of a znode that had that one before. ErrNoNode says that it has
// gone, also where another has its name.
func (s *Session) again(life context.Context, path string, before Stat) (Stat, error) {
	now, err := Insist(life, s, func() (Stat, error) { return s.Stat(life, path) })
	if err == nil && now.Czxid != before.Czxid {
		err = fmt.Errorf("look at %s: %w", path, recipes.ErrNoNode)
	}
	return now, err
}

// IsGone reports whether err says that a znode, or the session that would own
// it, does not exist.
func IsGone(err error) bool {
	return errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrSessionLost)
}
