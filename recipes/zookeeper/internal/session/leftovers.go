package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// resumption is what a session that was resumed knows of the time before Resume.
type resumption struct {
	mu    sync.Mutex
	paths map[string]bool // of the znodes that were resumed; nil: the session was not
	late  bool            // DropRest was called
	until int64           // the last transaction of the time before Resume

	dropping sync.Mutex // held while DropRest runs
	listed   bool       // rest is what the first DropRest has found
	rest     []string
	dropped  bool
}

// MarkResumed says that a znode of the time before Resume is resumed: DropRest leaves it. It
// reports false if it was resumed before, or it is too late: two must not have it.
func (s *Session) MarkResumed(path string) bool {
	s.resumption.mu.Lock()
	defer s.resumption.mu.Unlock()
	if s.resumption.paths == nil || s.resumption.late || s.resumption.paths[path] {
		return false
	}
	s.resumption.paths[path] = true
	return true
}

// WasResumed reports whether MarkResumed was called for the path.
func (s *Session) WasResumed(path string) bool {
	s.resumption.mu.Lock()
	defer s.resumption.mu.Unlock()
	return s.resumption.paths[path]
}

// ResumeBare resumes a bare znode from before Resume.
func (s *Session) ResumeBare(bare BareZnode) { s.bare.made(bare) }

// DropRest deletes what the session had before Resume, and nobody has resumed: contenders
// whose callers do not know of them, receipts, guards. What the session has created since
// stays: a waiter that was resumed may have been granted meanwhile, with another znode.
// DropRest returns when the rest is known to be gone. If it fails, it can be called again,
// and deletes what the first call has found. Until then the session counts as one that
// holds something.
//
// spare tells of a path that its znode stays, because nobody has to take it up.
//
// It needs ZooKeeper 3.6, which can list a session's ephemeral znodes.
func (s *Session) DropRest(ctx context.Context, spare func(path string) bool) error {
	s.resumption.dropping.Lock()
	defer s.resumption.dropping.Unlock()
	s.resumption.mu.Lock()
	resumed := s.resumption.paths != nil
	s.resumption.late = true
	s.resumption.mu.Unlock()
	if !resumed {
		return fmt.Errorf("%w: the session was not resumed", recipes.ErrInvalid)
	}
	if !s.resumption.listed {
		all, err := s.ephemerals(ctx)
		if err != nil {
			return err
		}
		s.resumption.rest, s.resumption.listed = slices.DeleteFunc(all, func(path string) bool { return s.WasResumed(path) || spare(path) }), true
	}
	var deletions []<-chan error
	for _, path := range s.resumption.rest {
		stat, err := s.Stat(ctx, path)
		if errors.Is(err, recipes.ErrNoNode) || err == nil && stat.Czxid > s.resumption.until {
			continue // what was listed has gone, also where another has its name
		}
		if err != nil {
			return err
		}
		deletions = append(deletions, s.DeleteOwned(path, stat))
	}
	for _, done := range deletions {
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, recipes.ErrNoNode) {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("delete what was left: %w", ctx.Err())
		}
	}
	s.resumption.rest = nil
	if !s.resumption.dropped {
		s.resumption.dropped = true
		s.EndHold()
	}
	return nil
}

// ephemerals lists the session's ephemeral znodes below the chroot.
func (s *Session) ephemerals(ctx context.Context) ([]string, error) {
	full, err := readWith(ctx, s, "list the ephemeral znodes of", "/", func(r conn.Sender) ([]string, error) {
		return r.Unbounded().Ephemerals(s.full("/"))
	})
	paths := make([]string, 0, len(full))
	for _, path := range full {
		if strings.HasPrefix(path, s.wire.Chroot+"/") { // the server takes /ab for one below /a
			paths = append(paths, s.local(path))
		}
	}
	return paths, err
}
