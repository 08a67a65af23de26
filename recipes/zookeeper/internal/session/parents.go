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

// Ensure creates path and what is missing above it, as containers where the server
// can. Calling it twice is harmless.
func (s *Session) Ensure(ctx context.Context, path string) error {
	if err := s.ensureWith(ctx, s.full(path), s.acl); err != nil {
		return fmt.Errorf("create the parents of %s: %w", path, err)
	}
	return nil
}

// Provide creates path, where it is missing, as a persistent node without data: for
// what is to stay though nothing lies below it. What is missing above it is
// created as by Ensure. Calling it twice is harmless, so that no error leaves an
// outcome unknown.
func (s *Session) Provide(ctx context.Context, path string) error {
	return s.ProvideIn(ctx, path, s.Ensure)
}

// ProvideIn is Provide where parent makes what is missing above.
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

// EnsureLine is Ensure for a path at which contenders have places. The path gets the ACL
// of the bare znodes, so that a server has that ACL in use for as long as there is a line.
func (s *Session) EnsureLine(ctx context.Context, path string) error {
	if err := s.ensureWith(ctx, s.full(path), s.identity.acl(s.acl)); err != nil {
		return fmt.Errorf("create the parents of %s: %w", path, err)
	}
	return nil
}

// ensureWith creates the last node with that ACL, and what is missing above it with that
// of new znodes.
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
		// Its parent is missing, or was, as an empty container, removed
		// between the two calls.
		if err := s.ensureWith(ctx, gopath.Dir(full), s.acl); err != nil {
			return err
		}
	}
}
