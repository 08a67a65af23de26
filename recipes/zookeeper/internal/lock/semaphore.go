package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// semaphoreMarkers are those of a semaphore. In the dialects of other libraries they are
// those of the lock under which a lease is taken.
var semaphoreMarkers = line.Spoken{
	recipes.ZooKeeper: {line.Lease},
	recipes.Curator:   {line.Lock},
	recipes.Kazoo:     {line.KazooLock},
}

// leaseMarkers are those at the path of a semaphore.
var leaseMarkers = line.Spoken{
	recipes.ZooKeeper: {line.Lease},
	recipes.Curator:   {line.CuratorLeases},
	recipes.Kazoo:     {line.KazooLease},
}

type semaphore struct {
	recipe string // its name, in errors
	line   *line.Line
	cfg    recipes.SemaphoreConfig
}

// NewSemaphore returns the semaphore at path.
func NewSemaphore(lines *line.Lines, path string, cfg recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	s, err := newSemaphore("semaphore", lines, path, cfg, semaphoreMarkers)
	if err != nil {
		return nil, err
	}
	if s.line.Dialect != recipes.ZooKeeper {
		return newLeased(s.line, cfg), nil
	}
	s.line.Permits = cfg.Permits
	return s, nil
}

func newSemaphore(recipe string, lines *line.Lines, path string, cfg recipes.SemaphoreConfig, spoken line.Spoken) (*semaphore, error) {
	l, err := lines.At(recipe, path, cfg.Strategy, cfg.Dialect, spoken)
	if err != nil {
		return nil, err
	}
	err = cfg.Validate()
	if err == nil {
		err = l.Stores(cfg.Data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", recipe, path, err)
	}
	return &semaphore{recipe: recipe, line: l, cfg: cfg}, nil
}

func (s *semaphore) Path() string { return s.line.Path }

func (s *semaphore) Acquire(ctx context.Context) (recipes.Hold, error) {
	return permit(s.enter(ctx, false))
}

func (s *semaphore) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return permit(s.enter(ctx, true))
}

// permit returns hold, or no hold on an error.
func permit(hold *line.Hold, err error) (recipes.Hold, error) {
	if err != nil {
		return nil, err
	}
	return hold, nil
}

func (s *semaphore) enter(ctx context.Context, try bool) (*line.Hold, error) {
	for {
		hold, err := s.line.Enter(ctx, line.Options{Data: s.cfg.Data, Try: try, Joined: s.cfg.Joined, Admit: s.agree})
		switch {
		case err == nil:
			return hold, nil
		case !errors.Is(err, recipes.ErrMismatch) || !s.forget(ctx):
			return nil, s.failed(err)
		}
	}
}

// forget deletes a path of another number of permits, in which no contender is. ZooKeeper
// deletes no znode that has children, so that the number does not change for a contender.
func (s *semaphore) forget(ctx context.Context) bool {
	node, err := s.line.Session.Get(ctx, s.line.Path)
	if n := Permits(node.Data); err != nil || n == 0 || n == s.cfg.Permits || node.Stat.NumChildren > 0 {
		return err == nil && n == s.cfg.Permits || errors.Is(err, recipes.ErrNoNode)
	}
	err = s.line.Session.DeleteOnce(ctx, s.line.Path, node.Stat.Version)
	return err == nil || errors.Is(err, recipes.ErrNoNode)
}

// Resume is line.Line.Resume. What the contenders have agreed on stands.
func (s *semaphore) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.Hold, error) {
	hold, err := s.line.Resume(ctx, znode, token)
	if err != nil {
		return nil, s.failed(err)
	}
	return hold, nil
}

// ResumeWaiting is line.Line.ResumeWaiting.
func (s *semaphore) ResumeWaiting(ctx context.Context, znode string, try bool) (recipes.Hold, error) {
	return permit(s.resumeWaiting(ctx, znode, try))
}

func (s *semaphore) resumeWaiting(ctx context.Context, znode string, try bool) (*line.Hold, error) {
	hold, err := s.line.ResumeWaiting(ctx, znode, line.Options{Try: try, Joined: s.cfg.Joined, Admit: s.agree})
	if err != nil {
		return nil, s.failed(err)
	}
	return hold, nil
}

func (s *semaphore) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	all, err := SemaphoreContenders.At(ctx, s.line.Session, s.line.Path, s.line.Dialect)
	if err != nil {
		return nil, s.failed(err)
	}
	return all, nil
}

// SemaphoreContenders reads the contenders of a semaphore. As many as there are
// permits hold.
var SemaphoreContenders = line.Reader{Data: true, Spoken: leaseMarkers, Read: func(ctx context.Context, s *session.Session, p line.Parent, d recipes.Dialect) ([]recipes.Contender, error) {
	if d != recipes.ZooKeeper {
		return readLeases(ctx, s, p, d)
	}
	return p.InLine(ctx, s, recipes.KindSemaphore, Permits(p.Data), semaphoreMarkers[d])
}}

func (s *semaphore) failed(err error) error {
	return fmt.Errorf("%s %s: %w", s.recipe, s.line.Path, err)
}

// permitsWord begins the data of a semaphore's path.
const permitsWord = "permits="

// word is what the path's data say when the contenders agree on this number.
func (s *semaphore) word() []byte { return fmt.Appendf(nil, "%s%d", permitsWord, s.cfg.Permits) }

// Permits returns the number of permits in the data of a semaphore's path, or 0 if
// the data is not a semaphore's.
func Permits(data []byte) int {
	number, ok := strings.CutPrefix(string(data), permitsWord)
	if n, err := strconv.Atoi(number); ok && err == nil && n > 0 {
		return n
	}
	return 0
}

// agree makes sure that the path's data says the number of permits that this
// contender counts with. It runs when the contender stands in line: while it does,
// the path cannot be removed, and no contender changes one number to another. So all
// contenders that were admitted count with the same number.
func (s *semaphore) agree(ctx context.Context) error {
	_, err := s.agreed(ctx)
	return err
}

// agreed is agree. It returns the version of the data that say the number.
func (s *semaphore) agreed(ctx context.Context) (version int32, err error) {
	want := string(s.word())
	for {
		node, err := s.line.Session.Get(ctx, s.line.Path)
		if err != nil {
			if errors.Is(err, recipes.ErrNoNode) { // with the contender's znode
				return 0, fmt.Errorf("%w: %s", recipes.ErrRemoved, s.line.Path)
			}
			return 0, err
		}
		said := string(node.Data)
		switch {
		case said == want:
			return node.Stat.Version, nil
		case strings.HasPrefix(said, permitsWord):
			return 0, fmt.Errorf("%w: the path says %q, this contender %q", recipes.ErrMismatch, said, want)
		}
		// Kazoo's permits have no word before them. And one that is going to leave writes none.
		if err := s.line.MeetsForeign(ctx); err != nil {
			return 0, err
		}
		if said != "" {
			return 0, fmt.Errorf("%w: the path holds %q, which is not a number of permits", recipes.ErrMismatch, znode.Excerpt(said))
		}
		err = znode.SetData(ctx, s.line.Session, s.line.Path, []byte(want), node.Stat.Version)
		if errors.Is(err, recipes.ErrNoNode) {
			continue // and the next read says so
		}
		if !znode.TryAgain(ctx, s.line.Session, err) {
			return node.Stat.Version + 1, znode.GivenUp(ctx, s.line.Session, "agree on "+want, err) // or nil
		}
	}
}
