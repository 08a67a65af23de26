package session

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// deletionsSuffix ends the name of a znode that counts deletions. The number comes before it, so no
// program takes the znode for a contender.
const deletionsSuffix = "-deletions"

// Deletions is the znode that counts the deletions of znodes in one directory, by its version.
//
// ZooKeeper compares only versions, and a version does not distinguish a znode from one that
// has replaced it. So each transaction that deletes a persistent znode also sets the znode that
// counts the deletions in its directory. A transaction that depends on a znode checks the count
// that was known before the znode was read. If the count is the same, the znode has not been
// deleted since. Its version then shows whether its data is as it was read.
//
// The count is beside the znodes that are deleted, not in a place of the recipe. So sessions
// that reach one znode by different paths, as configurations that lie in each other do, use the
// same count. Its name contains the czxid of the directory. If the directory is replaced, the
// name is another one, so a count is never one of an earlier directory.
//
// The znode has no data. The directory can only be deleted together with it: see IsDeletions.
type Deletions struct {
	Path    string
	Version int32
}

// IsDeletions reports whether the znode of that name counts deletions.
func IsDeletions(name string) bool {
	return strings.HasPrefix(name, protectedPrefix) && strings.HasSuffix(name, deletionsSuffix)
}

// maxDeletions limits the directories whose counts a session keeps.
const maxDeletions = 256

type deletions struct {
	mu    sync.Mutex
	known map[string]Deletions // by directory
}

// KnownDeletions returns the count that the session last learned. It may be outdated. Then a
// transaction that checks it is refused, and the caller must call ForgetDeletions. Without a
// known count it returns false.
func (s *Session) KnownDeletions(dir string) (Deletions, bool) {
	s.deletions.mu.Lock()
	defer s.deletions.mu.Unlock()
	d, ok := s.deletions.known[dir]
	return d, ok
}

// LearnDeletions keeps a count for KnownDeletions.
func (s *Session) LearnDeletions(dir string, d Deletions) {
	s.deletions.mu.Lock()
	defer s.deletions.mu.Unlock()
	for other := range s.deletions.known {
		if len(s.deletions.known) < maxDeletions {
			break
		}
		delete(s.deletions.known, other)
	}
	if s.deletions.known == nil {
		s.deletions.known = make(map[string]Deletions)
	}
	s.deletions.known[dir] = d
}

// ForgetDeletions removes the count that KnownDeletions returns.
func (s *Session) ForgetDeletions(dir string) {
	s.deletions.mu.Lock()
	defer s.deletions.mu.Unlock()
	delete(s.deletions.known, dir)
}

// ReadDeletions reads the count, and creates its znode if it is missing. It keeps the count for
// KnownDeletions. If the directory does not exist, the error matches ErrNoNode.
//
// It creates nothing that others could mistake for a change, so no error matches
// ErrUnknownOutcome.
func (s *Session) ReadDeletions(ctx context.Context, dir string) (Deletions, error) {
	for {
		stat, err := s.Stat(ctx, dir)
		if err != nil {
			return Deletions{}, err
		}
		d := Deletions{Path: deletionsPath(dir, stat)}
		count, err := s.Stat(ctx, d.Path)
		d.Version = count.Version
		if errors.Is(err, recipes.ErrNoNode) {
			d, err = s.createDeletions(ctx, dir)
		}
		switch {
		case err == nil:
			s.LearnDeletions(dir, d)
			return d, nil
		case !errors.Is(err, errAgain):
			return Deletions{}, fmt.Errorf("count the deletions in %s: %w", dir, countDenied(dir, err))
		}
	}
}

// countDenied adds to a refused access to the znode that counts the deletions in dir which permissions
// clients need. Without the count there is no comparison, and no deletion.
func countDenied(dir string, err error) error {
	if !errors.Is(err, recipes.ErrAccessDenied) {
		return err
	}
	return fmt.Errorf("%w: a client that compares needs the permission to read the znode that counts the deletions in %s,"+
		" one that deletes needs the permission to write it, and the first one needs the permission to create znodes in %[2]s;"+
		" that znode has the SessionConfig.ACL of the client that created it: set its ACL, and use one SessionConfig.ACL", err, dir)
}

func deletionsPath(dir string, stat Stat) string {
	return gopath.Join(dir, fmt.Sprintf("%s%x%s", protectedPrefix, stat.Czxid, deletionsSuffix))
}

// errAgain means that another client was faster, or that the outcome is unknown.
var errAgain = errors.New("read again")

// createDeletions makes one attempt to create the znode that counts the deletions in dir.
//
// If dir were replaced between the read of its czxid and the creation, the new directory would
// have a count under the name of the old one. A session that still knows the old name would then
// find a count that nothing increases. So the creation depends on a guard, a protected znode
// that was in dir before the read: it is gone if dir was replaced.
func (s *Session) createDeletions(ctx context.Context, dir string) (d Deletions, _ error) {
	guard, err := s.CreateProtectedIn(ctx, dir, "guard-", nil, func(context.Context, string) error {
		return fmt.Errorf("%s: %w", dir, recipes.ErrNoNode)
	})
	if err != nil {
		return d, err
	}
	stat, err := s.Stat(ctx, dir)
	if err == nil {
		d.Path = deletionsPath(dir, stat)
		var t Txn
		t.Check(guard, recipes.AnyVersion)
		t.Create(d.Path, nil, false)
		err = s.Commit(ctx, t)
	}
	deleted := s.Delete(guard) // not by the transaction: the ACL of dir may refuse deletions
	select {
	case <-deleted:
	case <-ctx.Done():
	}
	switch {
	case errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrNodeExists), s.Unsettled(ctx, err):
		err = errAgain
	case errors.Is(err, recipes.ErrUnknownOutcome):
		err = s.Interrupted("create", ctx)
	}
	return d, err
}
