package zookeeper_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// kazoo's contenders make their path as one that stays, look for it once, and fail with
// NoNodeError when it has gone. A container goes as soon as it is empty.
func TestThePathOfKazoosContendersStays(t *testing.T) {
	for name, use := range map[string]func(ctx context.Context, s recipes.Session, path string) error{
		"lock": func(ctx context.Context, s recipes.Session, path string) error {
			return taken(ctx, enterLock(""), s, path)
		},
		"reader": func(ctx context.Context, s recipes.Session, path string) error {
			return taken(ctx, enterShared(recipes.Reading), s, path)
		},
		"election": func(ctx context.Context, s recipes.Session, path string) error {
			return taken(ctx, enterElection, s, path)
		},
		"semaphore": func(ctx context.Context, s recipes.Session, path string) error {
			return taken(ctx, enterKazooSemaphore, s, path)
		},
		"group": func(ctx context.Context, s recipes.Session, path string) error {
			g, err := s.Group(path, recipes.GroupConfig{Dialect: recipes.Kazoo})
			if err != nil {
				return err
			}
			m, err := g.Join(ctx, nil)
			if err != nil {
				return err
			}
			return m.Leave(ctx)
		},
		"queue": func(ctx context.Context, s recipes.Session, path string) error {
			q, err := s.Queue(path, recipes.QueueConfig{Dialect: recipes.Kazoo})
			if err != nil {
				return err
			}
			if _, err := q.Put(ctx, nil); err != nil {
				return err
			}
			_, err = q.Take(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEmbedded(t, func(s *scene, srv *zkserver.Server) {
				if err := use(s.ctx, s.session(), s.path); err != nil {
					t.Fatal(err)
				}
				srv.RunContainerCheck()
				if ok, _, err := s.raw.Exists(s.path); err != nil || !ok {
					t.Errorf("the path has gone (%v)", err)
				}
				if ok, _, err := s.raw.Exists(s.path + "-__lock__"); name == "semaphore" && (err != nil || !ok) {
					t.Errorf("the path of its lock has gone (%v)", err)
				}
			})
		})
	}
}

// taken takes a turn in the dialect of kazoo.
func taken(ctx context.Context, enter enter, s recipes.Session, path string) error {
	_, release, err := enter(ctx, s, path, recipes.Kazoo, false)
	if err != nil {
		return err
	}
	return release(ctx)
}

func enterKazooSemaphore(ctx context.Context, s recipes.Session, path string, _ recipes.Dialect, _ bool) (recipes.Grant, func(context.Context) error, error) {
	m, err := s.Semaphore(path, recipes.SemaphoreConfig{Permits: 2, Dialect: recipes.Kazoo})
	if err != nil {
		return nil, nil, err
	}
	return released(m.Acquire(ctx))
}

// kazoo's permits are a bare number. Where its contenders stand, they are named, and not
// only the number, which ours cannot read.
func TestASemaphoreNamesKazoosContendersBeforeTheirPermits(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.make(s.path, []byte("2"), 0)
		theirs := s.make(s.path+foreignLeases[1].lease, nil, zk.FlagEphemeral)
		_, _, err := enterSemaphore(s.ctx, s.session(), s.path, "", false)
		s.is(err, recipes.ErrForeign)
		if err := s.raw.Delete(theirs, -1); err != nil {
			s.Fatal(err)
		}
		_, _, err = enterSemaphore(s.ctx, s.session(), s.path, "", false)
		s.is(err, recipes.ErrMismatch)
	})
}

// kazoo's contenders fail on another number of permits in the path's data, and write it
// when they make the path.
func TestASemaphoreOfKazooComparesItsPermits(t *testing.T) {
	for _, tt := range []struct {
		data string
		want error
		left string
	}{
		{"2", nil, "2"},
		{" 2\n", nil, " 2\n"},
		{"3", recipes.ErrMismatch, "3"},
		{"of another use", nil, "of another use"},
		{"", nil, "2"},
	} {
		onBoth(t, func(s *scene) {
			s.make(s.path, []byte(tt.data), 0)
			err := taken(s.ctx, enterKazooSemaphore, s.session(), s.path)
			s.is(err, tt.want)
			if left := string(s.data(s.path)); left != tt.left || len(s.children(s.path)) != 0 {
				s.Errorf("of %q it has left %q, and %q", tt.data, left, s.children(s.path))
			}
		})
	}
	onBoth(t, func(s *scene) {
		s.is(taken(s.ctx, enterKazooSemaphore, s.session(), s.path), nil)
		if left := string(s.data(s.path)); left != "2" {
			s.Errorf("it has made the path with %q", left)
		}
	})
}
