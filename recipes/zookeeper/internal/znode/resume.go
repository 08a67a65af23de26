package znode

import (
	"context"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Resume resumes a znode below dir that another process has created in this session: see
// session.Resume. If the znode is deleted, or another one has its name, the error matches
// recipes.ErrNotHeld and recipes.ErrRemoved. Resume does not change the znode.
func Resume(ctx context.Context, s *session.Session, dir, path string, token recipes.Token) (*Ephemeral, error) {
	if token == 0 {
		return nil, fmt.Errorf("resume: %w: %s without its token", recipes.ErrInvalid, path)
	}
	return resume(ctx, s, dir, path, token)
}

// ResumeWaiter is Resume for a znode with which nothing was granted yet, so that the caller has
// no token.
func ResumeWaiter(ctx context.Context, s *session.Session, dir, path string) (*Ephemeral, error) {
	return resume(ctx, s, dir, path, 0)
}

func resume(ctx context.Context, s *session.Session, dir, path string, token recipes.Token) (*Ephemeral, error) {
	if gopath.Dir(path) != dir {
		return nil, fmt.Errorf("resume: %w: %q is not of %s", recipes.ErrInvalid, path, dir)
	}
	e, err := watched(ctx, s, path, session.Stat{Czxid: int64(token)})
	if err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	if !s.MarkResumed(path) {
		err := fmt.Errorf("resume: %w: %s cannot be resumed now, or is already resumed", recipes.ErrInvalid, path)
		e.End(err)
		return nil, err
	}
	return e, nil
}

// Released returns an Ephemeral that was released and whose znode is deleted.
func Released(s *session.Session, path string, token recipes.Token) *Ephemeral {
	e := &Ephemeral{
		session: s, path: path, czxid: int64(token), reason: recipes.ErrReleased,
		done: make(chan struct{}), writing: make(chan struct{}, 1),
	}
	close(e.done)
	return e
}
