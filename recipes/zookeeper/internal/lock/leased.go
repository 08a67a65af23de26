package lock

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// leased is a semaphore of Curator (InterProcessSemaphoreV2) or of kazoo (Semaphore). The
// holder of a lock creates its lease as soon as one is free, and then releases the lock.
// This was read in the sources of Curator 5.4.0 and kazoo 2.8.0.
//
//	Curator  PATH/locks, an InterProcessMutex; PATH/leases/_c_<guid>-lease-<sequence>
//	kazoo    PATH-__lock__, a Lock; PATH/<guid>
//
// As the libraries do, a contender counts all children, of whatever name. It holds a
// permit if it counts no more than the permits while its lease is among them. The holder
// whose lease was created last has counted those of all other holders. So there are never
// more holders than permits, even if a contender creates its lease without the lock. The
// lock only orders the contenders, and prevents two of them from waiting for each other.
//
// A contender of Curator creates its lease first and waits with it. One of kazoo waits
// until there are fewer leases than permits, and does not count again.
type leased struct {
	*semaphore            // its Line is at the path itself, and checks for contenders of other recipes
	lock       *line.Line // a contender holds this lock while it creates its lease
	leases     string     // the parent of leases
}

func newLeased(of *semaphore) *leased {
	at, lock := *of.Line, *of.Line
	at.Markers = leaseMarkers[lock.Dialect]
	of.Line = &at
	of.Reader.Data = false // the permits are not in the data of a lease's path
	s := &leased{semaphore: of, lock: &lock}
	s.leases, lock.Path = line.LeasePaths(of.Path(), lock.Dialect)
	return s
}

// prepare fails, before anything is created, if a contender of another recipe has a znode
// at the path. It creates the parent of Curator's leases, by which others find the
// contenders of a semaphore.
func (s *leased) prepare(ctx context.Context) error {
	names, err := s.Line.Names(ctx)
	if err == nil {
		err = s.Line.Foreign(ctx, names)
	}
	if err != nil {
		return err
	}
	if s.lock.Dialect == recipes.Kazoo {
		return s.agree(ctx)
	}
	if slices.Contains(names, line.CuratorLeases) {
		return nil
	}
	return s.lock.Parent(ctx, s.leases)
}

func (s *leased) Acquire(ctx context.Context) (recipes.Hold, error) {
	return s.Granted(s.Metered(ctx, func() (*line.Hold, error) { return s.acquire(ctx, false) }))
}

func (s *leased) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return s.Granted(s.Metered(ctx, func() (*line.Hold, error) { return s.acquire(ctx, true) }))
}

func (s *leased) acquire(ctx context.Context, try bool) (*line.Hold, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	o := s.Trying(try)
	o.Admit = s.Line.MeetsForeign
	if joined := o.Joined; joined != nil {
		o.Joined = func(p recipes.Place) {
			joined(recipes.Place{Znode: p.Znode, Position: recipes.UnknownPosition})
		}
	}
	locked, err := s.lock.Enter(ctx, o)
	if met, ok := errors.AsType[*recipes.ForeignError](err); ok { // the contender may be one of those that wait for the lock
		_ = s.Session.Refuse(s.Path(), *met)
	}
	if err != nil {
		return nil, err
	}
	lease, err := s.take(ctx, locked, try)
	released := locked.Release(ctx) // the release continues after ctx has ended
	if err == nil && released != nil {
		_ = lease.Release(ctx) // this release continues too
		err = released
	}
	return lease, err
}

// agree does what a contender of kazoo does with the data of the path. It fails if the data is
// another number of permits. If there is no data, it writes the number. It ignores data that is
// not a number.
func (s *leased) agree(ctx context.Context) error {
	return znode.Retry(ctx, s.Session, "agree on the permits", func() error {
		node, err := s.Session.Get(ctx, s.Path())
		if errors.Is(err, recipes.ErrNoNode) {
			if err = s.lock.Parent(ctx, s.Path()); err == nil {
				return znode.ErrReadAgain
			}
		}
		if err != nil {
			return err
		}
		switch stored, err := strconv.Atoi(strings.TrimSpace(string(node.Data))); {
		case err == nil && stored != s.cfg.Permits:
			return fmt.Errorf("%w: the path says %d permits, this contender %d", recipes.ErrMismatch, stored, s.cfg.Permits)
		case err == nil, len(node.Data) > 0: // data of another use, which kazoo ignores
			return nil
		}
		return znode.Listed(znode.SetData(ctx, s.Session, s.Path(), strconv.AppendInt(nil, int64(s.cfg.Permits), 10), node.Stat.Version))
	})
}

// take creates a lease and waits until it holds a permit. On an error it deletes the
// lease.
func (s *leased) take(ctx context.Context, locked *line.Hold, try bool) (*line.Hold, error) {
	if s.lock.Dialect == recipes.Kazoo {
		if err := s.room(ctx, locked, try, s.cfg.Permits-1); err != nil {
			return nil, err
		}
	}
	path, err := s.create(ctx)
	if err != nil {
		return nil, err
	}
	err = s.room(ctx, locked, try, s.cfg.Permits)
	var lease *line.Hold
	if err == nil {
		lease, err = s.Line.Granted(ctx, path)
	}
	if err == nil {
		return lease, nil
	}
	return nil, s.Line.AfterLeaving(ctx, s.Session.Delete(path), err)
}

func (s *leased) create(ctx context.Context) (string, error) {
	if s.lock.Dialect == recipes.Curator {
		return s.Session.CreateProtected(ctx, s.leases, line.Lease, s.cfg.Data)
	}
	guid := session.NewGUID()
	path := gopath.Join(s.leases, hex.EncodeToString(guid[:]))
	_, err := s.Session.CreateNamedIn(ctx, path, s.cfg.Data, s.lock.Parent)
	return path, err
}

// room waits until there are at most so many leases. The contender must hold the lock
// throughout.
func (s *leased) room(ctx context.Context, locked *line.Hold, try bool, most int) error {
	return znode.Await(ctx, s.Session, "waiting for a lease", func() ([]<-chan struct{}, error) {
		if err := locked.Err(); err != nil {
			return nil, err
		}
		names, changed, err := s.Session.ChildrenW(ctx, s.leases)
		if errors.Is(err, recipes.ErrNoNode) {
			return nil, nil // there are no leases; if this contender's was among them, Line.Granted reports it
		}
		if err == nil && s.leases == s.Path() {
			err = s.Line.Foreign(ctx, names)
		}
		if err != nil || len(names) <= most {
			return nil, err
		}
		if try {
			return nil, fmt.Errorf("%w: %d leases of %d are taken", recipes.ErrContended, s.cfg.Permits, s.cfg.Permits)
		}
		s.Session.PrepareProof()
		return append(znode.Events(changed), locked.Done()), nil
	})
}

// readLeases reads the contenders that have a lease, in the order in which the leases were
// created, and then those that wait for the lock. The first of these may have a lease and
// wait with it, as Curator's do. It is listed once, and does not hold a permit.
func readLeases(ctx context.Context, s *session.Session, p line.Parent, d recipes.Dialect) ([]recipes.Contender, error) {
	leases, lock := line.LeasePaths(p.Path, d)
	var entries []line.Entry
	if d == recipes.Curator {
		var err error
		if p, err = line.ReadParent(ctx, s, leases, false); err != nil {
			return nil, err
		}
		entries = line.Parse(p.Names, line.Lease)
	} else {
		for _, name := range p.Names {
			if line.GUID(name) {
				entries = append(entries, line.Entry{Name: name})
			}
		}
	}
	found, err := p.Contenders(ctx, s, recipes.KindSemaphore, entries)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b recipes.Contender) int { return cmp.Compare(a.Token, b.Token) })
	for i := range found {
		found[i].Holds = true
	}
	queue, err := line.ReadParent(ctx, s, lock, false)
	if err != nil {
		return nil, err
	}
	if queue.Missing && d == recipes.Kazoo { // these are members of a double barrier, named as leases are
		return nil, nil
	}
	waiting, err := queue.InLine(ctx, s, recipes.KindSemaphore, 0, semaphoreMarkers[d])
	if err != nil {
		return nil, err
	}
	if last := len(found) - 1; last >= 0 && len(waiting) > 0 && found[last].SessionID == waiting[0].SessionID {
		found[last].Holds = false
		waiting = waiting[1:]
	}
	return append(found, waiting...), nil
}

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
	return s.Granted(s.Line.ResumeHold(ctx, znode, token))
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
