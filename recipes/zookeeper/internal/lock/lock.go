package lock

import (
	"cmp"
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

// markers are those of a lock. Curator uses the text's.
var markers = line.Spoken{
	recipes.ZooKeeper: {line.Lock},
	recipes.Curator:   {line.Lock},
	recipes.Kazoo:     {line.KazooLock},
}

func New(lines *line.Lines, path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	l, err := lines.At("lock", path, cfg.Strategy, cfg.Dialect, markers)
	if err != nil {
		return nil, err
	}
	made, err := line.NewRecipe(l, "lock", Contenders, hold, l.Stores(cfg.Data))
	if err != nil {
		return nil, err
	}
	made.Options = line.Options{Data: cfg.Data, Joined: cfg.Joined}
	return &lock{made}, nil
}

type lock struct{ line.Recipe[recipes.Hold] }

func hold(h *line.Hold) recipes.Hold { return h }

func (l *lock) Acquire(ctx context.Context) (recipes.Hold, error) {
	return l.Enter(ctx, l.Trying(false))
}

func (l *lock) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return l.Enter(ctx, l.Trying(true))
}

// Contenders reads the contenders of a lock. The first one holds it.
var Contenders = line.Reader{Spoken: markers, Read: func(ctx context.Context, s *session.Session, p line.Parent, d recipes.Dialect) ([]recipes.Contender, error) {
	return p.InLine(ctx, s, recipes.KindLock, 1, markers[d])
}}

// semaphoreMarkers are those of a semaphore. In a compatibility mode they are those of the
// lock under which a contender creates its lease.
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
	line.Recipe[recipes.Hold]
	cfg recipes.SemaphoreConfig
}

func NewSemaphore(lines *line.Lines, path string, cfg recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	s, err := newSemaphore("semaphore", lines, path, cfg, semaphoreMarkers)
	if err != nil {
		return nil, err
	}
	if s.Line.Dialect != recipes.ZooKeeper {
		return newLeased(s), nil
	}
	return s, nil
}

func newSemaphore(name string, lines *line.Lines, path string, cfg recipes.SemaphoreConfig, spoken line.Spoken) (*semaphore, error) {
	l, err := lines.At(name, path, cfg.Strategy, cfg.Dialect, spoken)
	if err != nil {
		return nil, err
	}
	made, err := line.NewRecipe(l, name, SemaphoreContenders, hold, cfg.Validate(), l.Stores(cfg.Data))
	if err != nil {
		return nil, err
	}
	s := &semaphore{made, cfg}
	s.Options = line.Options{Data: cfg.Data, Joined: cfg.Joined}
	if l.Dialect == recipes.ZooKeeper {
		l.Permits = cfg.Permits
		s.Options.Admit = s.agree
	}
	return s, nil
}

func (s *semaphore) Acquire(ctx context.Context) (recipes.Hold, error) {
	return s.Granted(s.Metered(ctx, func() (*line.Hold, error) { return s.acquire(ctx, false) }))
}

func (s *semaphore) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return s.Granted(s.Metered(ctx, func() (*line.Hold, error) { return s.acquire(ctx, true) }))
}

// acquire is line.Line.Enter. On a mismatch it deletes a path that no contender uses any
// more, and tries again.
func (s *semaphore) acquire(ctx context.Context, try bool) (*line.Hold, error) {
	for {
		permit, err := s.Line.Enter(ctx, s.Trying(try))
		if !errors.Is(err, recipes.ErrMismatch) {
			return permit, err
		}
		if forgotten, failed := s.forget(ctx); !forgotten {
			return nil, cmp.Or(failed, err)
		}
	}
}

// forget deletes a path that has another number of permits and no contenders. ZooKeeper
// refuses to delete a znode that has children, so the number never changes while a
// contender relies on it. forget reports whether the contender can enter again. An error
// means that it is unknown whether contenders disagree.
func (s *semaphore) forget(ctx context.Context) (forgotten bool, err error) {
	node, err := s.Session.Get(ctx, s.Path())
	if err == nil {
		switch n := Permits(node.Data); {
		case n == s.cfg.Permits:
			return true, nil // another contender has been faster
		case n == 0 || node.Stat.NumChildren > 0:
			return false, nil
		}
		err = s.Session.DeleteOnce(ctx, s.Path(), node.Stat.Version)
	}
	switch {
	case err == nil || errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrUnknownOutcome):
		return true, nil // the next attempt to enter shows the outcome
	case errors.Is(err, recipes.ErrNotEmpty) || errors.Is(err, recipes.ErrBadVersion) || errors.Is(err, recipes.ErrAccessDenied):
		return false, nil
	}
	return false, err
}

// SemaphoreContenders reads the contenders of a semaphore. The first ones hold, as many
// as there are permits.
var SemaphoreContenders = line.Reader{Data: true, Spoken: leaseMarkers, Read: func(ctx context.Context, s *session.Session, p line.Parent, d recipes.Dialect) ([]recipes.Contender, error) {
	if d != recipes.ZooKeeper {
		return readLeases(ctx, s, p, d)
	}
	return p.InLine(ctx, s, recipes.KindSemaphore, Permits(p.Data), semaphoreMarkers[d])
}}

const permitsWord = "permits="

// word returns the data of the path once the contenders have agreed on this number.
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

// agree makes sure that the data of the path is this contender's number of permits. It
// runs while the contender has its place: until that is deleted, the path cannot be
// deleted, and no contender replaces one number by another. So all contenders that were
// admitted have the same number.
func (s *semaphore) agree(ctx context.Context) error {
	_, err := s.agreed(ctx)
	return err
}

// agreed is agree, and returns the version of the data.
func (s *semaphore) agreed(ctx context.Context) (version int32, err error) {
	want := string(s.word())
	err = znode.Retry(ctx, s.Session, "agree on "+want, func() error {
		node, err := s.Session.Get(ctx, s.Path())
		if err != nil {
			if errors.Is(err, recipes.ErrNoNode) { // the path was deleted with the contender's znode
				return fmt.Errorf("%w: %s", recipes.ErrRemoved, s.Path())
			}
			return err
		}
		data := string(node.Data)
		version = node.Stat.Version
		switch {
		case data == want:
			return nil
		case strings.HasPrefix(data, permitsWord):
			return fmt.Errorf("%w: the path says %q, this contender %q", recipes.ErrMismatch, data, want)
		}
		// This comes before the number is written, because a contender that is about to leave must
		// not write it. It also comes before other data are refused, because kazoo stores a bare
		// number of permits.
		if err := s.Line.MeetsForeign(ctx); err != nil {
			return err
		}
		if data != "" {
			return fmt.Errorf("%w: the path holds %q, which is not a number of permits", recipes.ErrMismatch, znode.Excerpt(data))
		}
		version++
		return znode.Listed(znode.SetData(ctx, s.Session, s.Path(), []byte(want), node.Stat.Version))
	})
	return version, err
}
