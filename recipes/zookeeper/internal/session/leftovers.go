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

// resumption is the state of a resumed session from before Resume.
type resumption struct {
	mu    sync.Mutex
	paths map[string]bool // of znodes that were resumed; nil if the session was not resumed
	late  bool            // DropRest was called
	until int64           // the last transaction before Resume

	dropping sync.Mutex // held while DropRest runs
	listed   bool       // rest holds what the first DropRest has listed
	rest     []string
	dropped  bool
}

// MarkResumed marks a znode from before Resume as resumed, so that DropRest does not delete it.
// It returns false if the znode is already marked, or DropRest was called: no two callers may
// get the same znode.
func (s *Session) MarkResumed(path string) bool {
	s.resumption.mu.Lock()
	defer s.resumption.mu.Unlock()
	if s.resumption.paths == nil || s.resumption.late || s.resumption.paths[path] {
		return false
	}
	s.resumption.paths[path] = true
	return true
}

// WasResumed reports whether MarkResumed has marked the path.
func (s *Session) WasResumed(path string) bool {
	s.resumption.mu.Lock()
	defer s.resumption.mu.Unlock()
	return s.resumption.paths[path]
}

// ResumeBare resumes a bare znode from before Resume.
func (s *Session) ResumeBare(bare BareZnode) { s.bare.made(bare) }

// DropRest deletes the session's znodes from before Resume that were not resumed: contenders
// unknown to their callers, receipts, guards. It does not delete znodes that the session has
// created after Resume: a resumed waiter may have been granted by such a znode. DropRest returns
// when the rest is known to be deleted. If it fails it can be called again, and deletes what
// the first call has listed. Until it succeeds, the session counts as holding something.
//
// spare reports whether the znode at a path stays although it was not resumed.
//
// DropRest needs ZooKeeper 3.6, which can list a session's ephemeral znodes.
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
			continue // the listed znode is deleted, even if another one has its name
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
	full, err := ask(ctx, s, "list the ephemeral znodes of", "/", conn.Ephemerals(s.full("/")).Unbounded(), conn.Reply.Paths)
	if errors.Is(err, conn.Unimplemented) {
		err = fmt.Errorf("resuming a session needs ZooKeeper 3.6 or later: %w", err)
	}
	paths := make([]string, 0, len(full))
	for _, path := range full {
		if strings.HasPrefix(path, s.wire.Chroot+"/") { // the server also matches /ab for the prefix /a
			paths = append(paths, s.local(path))
		}
	}
	return paths, err
}
