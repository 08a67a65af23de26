package lock

import (
	"context"
	"errors"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// Resume resumes a permit that another process was granted, in this session: see
// session.Resume. The lease is this session's, created by the transaction that is the
// token. Fewer leases than there are permits are older. That is so for each that holds,
// and for none that Curator's contenders make before they may have it. Otherwise the error
// matches recipes.ErrNotHeld; if the lease is gone or is another one, recipes.ErrRemoved too.
func (s *leased) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.Hold, error) {
	if !s.isLease(znode) {
		return nil, s.failed(fmt.Errorf("resume: %w: %q is not a lease of %s", recipes.ErrInvalid, znode, s.leases))
	}
	older, err := s.older(ctx, gopath.Base(znode), token)
	if err != nil {
		return nil, s.failed(err)
	}
	if older >= s.cfg.Permits {
		return nil, s.failed(fmt.Errorf("resume: %w: %d leases are older than %s", recipes.ErrNotHeld, older, znode))
	}
	if _, err := line.ResumeHeld(ctx, s.lock.Session, znode, token); err != nil {
		return nil, s.failed(err)
	}
	return s.at.Inspected(line.Resumed(s.lock.Session, znode, token, nil)), nil
}

// ResumeWaiting is not supported. What has to be resumed is a place in the line of the lock, or
// the lock and maybe a lease. A contender that waits joins the line again.
func (s *leased) ResumeWaiting(context.Context, string, bool) (recipes.Hold, error) {
	return nil, s.failed(fmt.Errorf("resume: %w: a contender that waits for a permit of another library", recipes.ErrUnsupported))
}

func (s *leased) isLease(znode string) bool {
	dir, name := gopath.Dir(znode), gopath.Base(znode)
	if s.lock.Dialect == recipes.Kazoo {
		return dir == s.leases && line.GUID(name)
	}
	return dir == s.leases && len(line.Parse([]string{name}, line.Lease)) == 1
}

// older counts the leases that are older than that of the name, which is of the token.
func (s *leased) older(ctx context.Context, own string, token recipes.Token) (n int, err error) {
	names, err := s.lock.Session.Children(ctx, s.leases)
	if errors.Is(err, recipes.ErrNoNode) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		stat, err := s.lock.Session.Stat(ctx, gopath.Join(s.leases, name))
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
