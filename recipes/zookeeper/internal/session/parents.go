package session

import (
	"context"
	"errors"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Ensure creates path and its missing parents, as containers if the server supports them.
// Calling it twice is harmless.
func (s *Session) Ensure(ctx context.Context, path string) error {
	if err := s.ensureWith(ctx, s.full(path), s.acl); err != nil {
		return fmt.Errorf("create the parents of %s: %w", path, err)
	}
	return nil
}

// Provide creates path, if it is missing, as a persistent znode without data, which remains
// when it has no children. It creates missing parents like Ensure. Calling it twice is
// harmless, so no error leaves the outcome unknown.
func (s *Session) Provide(ctx context.Context, path string) error {
	return s.ProvideIn(ctx, path, s.Ensure)
}

// ProvideIn is Provide with the function that creates the missing parents.
func (s *Session) ProvideIn(ctx context.Context, path string, parent func(context.Context, string) error) error {
	var t Txn
	t.Create(path, nil, false)
	for {
		err := s.Commit(ctx, t)
		switch {
		case err == nil, errors.Is(err, recipes.ErrNodeExists):
			return nil
		case errors.Is(err, recipes.ErrNoNode):
			if err := parent(ctx, gopath.Dir(path)); err != nil {
				return err
			}
		case s.Unsettled(ctx, err):
		case errors.Is(err, recipes.ErrUnknownOutcome):
			return s.Interrupted("create "+path, ctx)
		default:
			return err
		}
	}
}

// EnsureQueuePath is Ensure for the path of a wait queue. The path gets the ACL of the bare znodes,
// so the server keeps that ACL in its cache as long as the wait queue exists.
func (s *Session) EnsureQueuePath(ctx context.Context, path string) error {
	if err := s.ensureWith(ctx, s.full(path), s.identity.acl(s.acl)); err != nil {
		return fmt.Errorf("create the parents of %s: %w", path, err)
	}
	return nil
}

// ensureWith creates the last znode with the given ACL, and missing parents with the session's
// ACL.
func (s *Session) ensureWith(ctx context.Context, full string, acl []jute.ACL) error {
	for {
		_, err := readWith(ctx, s, "create", full, func(r conn.Sender) (struct{}, error) {
			return struct{}{}, r.CreateParent(full, acl)
		})
		if errors.Is(err, recipes.ErrNodeExists) {
			return nil
		}
		if !errors.Is(err, recipes.ErrNoNode) || full == "/" {
			return err
		}
		// The parent is missing, or it was an empty container that the server deleted between
		// the two calls.
		if err := s.ensureWith(ctx, gopath.Dir(full), s.acl); err != nil {
			return err
		}
	}
}
