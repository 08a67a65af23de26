package session

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Delete deletes a znode that this session created with protection. Its name is
// used once, so nobody else's node can be hit however often this is sent.
//
// It does not wait: the channel gives nil when the node is known to be gone,
// ErrNoNode if it was gone before anything of this call reached the server, or
// the reason why the session was lost. Whoever reads it or not, the deletion
// goes on until it is known or the session is over.
func (s *Session) Delete(path string) <-chan error {
	done := make(chan error, 1)
	if !s.Background(func(life context.Context) { done <- s.deleteUntilKnown(life, path) }) {
		done <- s.Err()
	}
	return done
}

func (s *Session) deleteUntilKnown(life context.Context, path string) error {
	sent := false
	_, err := readWith(life, s, "delete", path, func(c *zk.Conn) (struct{}, error) {
		err := c.Delete(s.full(path), -1)
		if sent && errors.Is(err, zk.ErrNoNode) {
			err = nil // the attempt whose reply was lost has done it
		}
		sent = true
		return struct{}{}, err
	})
	if err != nil && !IsGone(err) {
		s.log.Error("cannot delete own znode; it goes with the session", "path", path, "error", err)
	}
	return err
}

// IsGone reports whether err says that a znode, or the session that would own
// it, does not exist.
func IsGone(err error) bool {
	return errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrSessionLost)
}
