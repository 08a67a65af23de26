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

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// leased is a semaphore as Curator's InterProcessSemaphoreV2 and kazoo's Semaphore have
// it: whoever has the lock takes a lease as soon as there is one, and gives the lock to
// the next. Read in the sources of Curator 5.4.0 and kazoo 2.8.0.
//
//	Curator  PATH/locks, an InterProcessMutex; PATH/leases/_c_<guid>-lease-<sequence>
//	kazoo    PATH-__lock__, a Lock; PATH/<guid>
//
// A contender counts all children, whatever they are, as the libraries do. It holds if
// there are no more than permits when it has counted with its lease among them. Of all
// that hold, the one whose lease was made last has counted the others, unless they were
// gone. So no more hold, even if a contender takes its lease without the lock. The lock
// is for the order, and so that not two of them wait for each other.
//
// Curator's contenders make their lease first and wait with it; kazoo's wait until
// there are fewer than permits, and do not count again.
type leased struct {
	lock   *line.Line
	at     *line.Line // at the path itself, for contenders of other recipes
	path   string
	leases string // the parent of leases
	cfg    recipes.SemaphoreConfig
}

func newLeased(lock *line.Line, cfg recipes.SemaphoreConfig) *leased {
	at := *lock
	at.Markers = leaseMarkers[lock.Dialect]
	s := &leased{lock: lock, at: &at, path: lock.Path, cfg: cfg}
	s.leases, lock.Path = line.LeasePaths(lock.Path, lock.Dialect)
	return s
}

// prepare fails before anything is made if a contender of another recipe has a znode at the
// path. It makes the directory of Curator's leases: others look for the contenders of
// a semaphore where that is.
func (s *leased) prepare(ctx context.Context) error {
	names, err := s.at.Names(ctx)
	if err == nil {
		err = s.at.Foreign(ctx, names)
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

func (s *leased) Path() string { return s.path }

func (s *leased) Acquire(ctx context.Context) (recipes.Hold, error) { return s.enter(ctx, false) }

func (s *leased) TryAcquire(ctx context.Context) (recipes.Hold, error) { return s.enter(ctx, true) }

func (s *leased) failed(err error) error { return fmt.Errorf("semaphore %s: %w", s.path, err) }

func (s *leased) enter(ctx context.Context, try bool) (recipes.Hold, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, s.failed(err)
	}
	joined := s.cfg.Joined
	if joined != nil {
		joined = func(p recipes.Place) {
			s.cfg.Joined(recipes.Place{Znode: p.Znode, Position: recipes.UnknownPosition})
		}
	}
	turn, err := s.lock.Enter(ctx, line.Options{Data: s.cfg.Data, Try: try, Joined: joined, Admit: s.at.MeetsForeign})
	var met *recipes.ForeignError
	if errors.As(err, &met) { // among those that wait for the lock, perhaps
		_ = s.lock.Session.Refuse(s.path, *met)
	}
	if err != nil {
		return nil, s.failed(err)
	}
	lease, err := s.take(ctx, turn, try)
	released := turn.Release(ctx) // which goes on when ctx ends
	if err == nil && released != nil {
		_ = lease.Release(ctx) // as that does
		err = released
	}
	if err != nil {
		return nil, s.failed(err)
	}
	return lease, nil
}

// agree makes sure that the path's data, where it is a number, is that of the permits.
// kazoo's contenders write it when they make the path, and fail on another number.
func (s *leased) agree(ctx context.Context) error {
	session := s.lock.Session
	for {
		node, err := session.Get(ctx, s.path)
		if errors.Is(err, recipes.ErrNoNode) {
			if err = s.lock.Parent(ctx, s.path); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		switch said, err := strconv.Atoi(strings.TrimSpace(string(node.Data))); {
		case err == nil && said != s.cfg.Permits:
			return fmt.Errorf("%w: the path says %d permits, this contender %d", recipes.ErrMismatch, said, s.cfg.Permits)
		case err == nil, len(node.Data) > 0: // data of another use, which kazoo ignores
			return nil
		}
		err = znode.SetData(ctx, session, s.path, strconv.AppendInt(nil, int64(s.cfg.Permits), 10), node.Stat.Version)
		if !errors.Is(err, recipes.ErrNoNode) && !znode.TryAgain(ctx, session, err) {
			return znode.GivenUp(ctx, session, "agree on the permits", err) // or nil
		}
	}
}

// take makes a lease and waits until it is one of those that hold. After an error it
// deletes the lease.
func (s *leased) take(ctx context.Context, turn *line.Hold, try bool) (*line.Hold, error) {
	if s.lock.Dialect == recipes.Kazoo {
		if err := s.room(ctx, turn, try, s.cfg.Permits-1); err != nil {
			return nil, err
		}
	}
	path, err := s.create(ctx)
	if err != nil {
		return nil, err
	}
	err = s.room(ctx, turn, try, s.cfg.Permits)
	var lease *line.Hold
	if err == nil {
		lease, err = line.Granted(ctx, s.lock.Session, path, nil)
	}
	if err == nil {
		return s.at.Inspected(lease), nil
	}
	deletion := s.lock.Session.Delete(path)
	if errors.Is(err, recipes.ErrContended) || errors.Is(err, recipes.ErrForeign) {
		select {
		case <-deletion:
		case <-ctx.Done():
			err = fmt.Errorf("%w; giving the lease back: %w", err, ctx.Err())
		}
	}
	return nil, err
}

func (s *leased) create(ctx context.Context) (string, error) {
	if s.lock.Dialect == recipes.Curator {
		return s.lock.Session.CreateProtected(ctx, s.leases, line.Lease, s.cfg.Data)
	}
	guid := uuid.New()
	path := gopath.Join(s.leases, hex.EncodeToString(guid[:]))
	_, err := s.lock.Session.CreateNamedIn(ctx, path, s.cfg.Data, s.lock.Parent)
	return path, err
}

// room waits until there are no more leases than most. The lock has to be held all the
// time.
func (s *leased) room(ctx context.Context, turn *line.Hold, try bool, most int) error {
	for {
		disconnected, err := s.lock.Session.Connected(ctx)
		if err == nil {
			err = turn.Err()
		}
		if err != nil {
			return err
		}
		names, changed, err := s.lock.Session.ChildrenW(ctx, s.leases)
		if errors.Is(err, recipes.ErrNoNode) {
			return nil // nobody has a lease; a lease of one's own is looked at before it is granted
		}
		if err != nil {
			return err
		}
		if s.leases == s.path {
			if err := s.at.Foreign(ctx, names); err != nil {
				return err
			}
		}
		if len(names) <= most {
			return nil
		}
		if try {
			return fmt.Errorf("%w: %d leases of %d are taken", recipes.ErrContended, s.cfg.Permits, s.cfg.Permits)
		}
		s.lock.Session.PrepareProof()
		if err := s.lock.Session.Wait(ctx, "waiting for a lease", changed.Fired(), disconnected, turn.Done()); err != nil {
			return err
		}
	}
}

func (s *leased) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	p, err := line.ReadParent(ctx, s.lock.Session, s.path, false)
	if err != nil {
		return nil, s.failed(err)
	}
	all, err := SemaphoreContenders.In(ctx, s.lock.Session, p, s.lock.Dialect)
	if err != nil {
		return nil, s.failed(err)
	}
	return all, nil
}

// readLeases reads who has a lease of the semaphore, in the order in which the leases
// were made, and then who waits for the lock. The first of these may have a lease and
// wait with it, as Curator's do: it is shown once, and does not hold.
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
	turns, err := line.ReadParent(ctx, s, lock, false)
	if err != nil {
		return nil, err
	}
	if turns.Missing && d == recipes.Kazoo { // members of kazoo's double barrier have the names of its leases
		return nil, nil
	}
	waiting, err := turns.InLine(ctx, s, recipes.KindSemaphore, 0, semaphoreMarkers[d])
	if err != nil {
		return nil, err
	}
	if last := len(found) - 1; last >= 0 && len(waiting) > 0 && found[last].SessionID == waiting[0].SessionID {
		found[last].Holds = false
		waiting = waiting[1:]
	}
	return append(found, waiting...), nil
}
