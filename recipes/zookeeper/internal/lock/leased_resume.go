package lock

import (
	"context"
	"errors"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// Resume resumes a permit that another process was granted in this session: see
// session.Resume. The lease must be this session's, created by the transaction that is the
// token, and fewer leases than there are permits may be older. Each holder meets the last
// condition. A contender of Curator that waits with its lease does not. Otherwise the
// error matches recipes.ErrNotHeld, and also recipes.ErrRemoved if the lease is gone or
// was replaced.
func (s *leased) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.Hold, error) {
	if !s.isLease(znode) {
		return nil, s.Failed(fmt.Errorf("resume: %w: %q is not a lease of %s", recipes.ErrInvalid, znode, s.leases))
	}
	older, err := s.older(ctx, gopath.Base(znode), token)
	if err != nil {
		return nil, s.Failed(err)
	}
	if older >= s.cfg.Permits {
		return nil, s.Failed(fmt.Errorf("resume: %w: %d leases are older than %s", recipes.ErrNotHeld, older, znode))
	}
	if _, err := line.ResumeHeld(ctx, s.Session, znode, token); err != nil {
		return nil, s.Failed(err)
	}
	return s.Line.Inspected(line.Resumed(s.Session, znode, token, nil)), nil
}

// ResumeWaiting is not supported. It would have to resume either a place in the lock's
// wait queue, or the lock and perhaps a lease. A contender that waits has to join again.
func (s *leased) ResumeWaiting(context.Context, string, bool) (recipes.Hold, error) {
	return nil, s.Failed(fmt.Errorf("resume: %w: a contender that waits for a permit of another library", recipes.ErrUnsupported))
}

func (s *leased) isLease(znode string) bool {
	dir, name := gopath.Dir(znode), gopath.Base(znode)
	if s.lock.Dialect == recipes.Kazoo {
		return dir == s.leases && line.GUID(name)
	}
	return dir == s.leases && len(line.Parse([]string{name}, line.Lease)) == 1
}

// older counts the leases that were created before the token, without the contender's own.
func (s *leased) older(ctx context.Context, own string, token recipes.Token) (n int, err error) {
	names, err := s.Session.Children(ctx, s.leases)
	if errors.Is(err, recipes.ErrNoNode) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		stat, err := s.Session.Stat(ctx, gopath.Join(s.leases, name))
		if errors.Is(err, recipes.ErrNoNode) || name == own {
			continue
		}
		if err != nil {
			return 0, err
		}
		if stat.Czxid < int64(token) {
			n++
		}
	}
	return n, nil
}
