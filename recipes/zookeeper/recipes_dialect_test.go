package zookeeper_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestASessionUsesAPathInOneDialect(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		session := s.Session()
		kinds := map[string]func(path string, d recipes.Dialect) error{
			"lock": func(path string, d recipes.Dialect) error {
				return failure(session.Lock(path, recipes.LockConfig{Dialect: d}))
			},
			"shared lock": func(path string, d recipes.Dialect) error {
				return failure(session.SharedLock(path, recipes.SharedLockConfig{Dialect: d}))
			},
			"semaphore": func(path string, d recipes.Dialect) error {
				return failure(session.Semaphore(path, recipes.SemaphoreConfig{Dialect: d, Permits: 2}))
			},
			"election": func(path string, d recipes.Dialect) error {
				return failure(session.Election(path, recipes.ElectionConfig{Dialect: d}))
			},
			"queue": func(path string, d recipes.Dialect) error {
				return failure(session.Queue(path, recipes.QueueConfig{Dialect: d}))
			},
			"group": func(path string, d recipes.Dialect) error {
				return failure(session.Group(path, recipes.GroupConfig{Dialect: d}))
			},
			"counter": func(path string, d recipes.Dialect) error {
				return failure(session.Counter(path, recipes.CounterConfig{Dialect: d}))
			},
		}
		for one, first := range kinds {
			for other, second := range kinds {
				path := "/" + strings.ReplaceAll(one+"-"+other, " ", "-")
				s.Is(first(path, recipes.Kazoo), nil)
				s.Is(second(path, recipes.Kazoo), nil)
				for _, d := range []recipes.Dialect{"", recipes.ZooKeeper, recipes.Curator} {
					if err := second(path, d); !errors.Is(err, recipes.ErrInvalid) {
						t.Errorf("%s in kazoo, then %s in %q: %v", one, other, d, err)
					}
				}
				s.Is(first(path, recipes.Kazoo), nil)
			}
		}
		_, err := session.PriorityLock("/lock-lock", recipes.PriorityLockConfig{})
		s.Is(err, recipes.ErrInvalid)
	})
}

// In kazoo, the members of a double barrier have names like the leases of a semaphore. But
// only a semaphore has a lock beside its path, from its first lease on.
func TestMembersOfKazoosDoubleBarrierAreNoContenders(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		session := s.Session()
		for _, guid := range []string{strings.ReplaceAll(uuid.NewString(), "-", ""), "89abcdef0123456789abcd1234567890", "89abcdef-0123-4567-89ab-cd1234567890"} {
			s.Make(s.Path+"/"+guid, nil, zk.FlagEphemeral)
		}
		for _, kinds := range [][]recipes.Kind{nil, {recipes.KindSemaphore}} {
			if lines := must.Get(session.Contenders(s.Ctx, s.Path, kinds...))(s.T); lines.Unknown != 0 || len(lines.Contenders) != 0 {
				t.Errorf("contenders of a double barrier: %+v", lines)
			}
		}
		s.Make(s.Path+"-__lock__", nil, 0)
		if lines := must.Get(session.Contenders(s.Ctx, s.Path))(s.T); len(lines.Contenders) != 2 || lines.Contenders[0].Dialect != recipes.Kazoo {
			t.Errorf("contenders of a semaphore: %+v", lines)
		}
	})
}

func TestContendersCountWhatIsUnknown(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		s.Make(s.Path+"/alien-", nil, zk.FlagEphemeral|zk.FlagSequence)
		s.Make(s.Path+"/_c_"+uuid.NewString()+"-alien-", nil, zk.FlagEphemeral|zk.FlagSequence)
		s.Make(s.Path+"/stays-", nil, zk.FlagSequence)
		s.Make(s.Path+"/unnumbered", nil, zk.FlagEphemeral)
		s.Make(s.Path+"/queue-", nil, zk.FlagEphemeral|zk.FlagSequence)
		s.Contender(kazooLock)
		session := s.Session()
		must.Get(must.Get(session.Group(s.Path, recipes.GroupConfig{}))(s.T).Join(s.Ctx, nil))(s.T)
		must.Get(must.Get(session.Lock("/other", recipes.LockConfig{}))(s.T).Acquire(s.Ctx))(s.T)
		if lines := must.Get(session.Contenders(s.Ctx, s.Path))(s.T); lines.Unknown != 2 || len(lines.Contenders) != 1 {
			t.Errorf("got %+v", lines)
		}
		if lines := must.Get(session.Contenders(s.Ctx, s.Path, recipes.KindLock))(s.T); lines.Unknown != 0 {
			t.Errorf("contenders of locks: %+v", lines)
		}
		if lines := must.Get(session.Contenders(s.Ctx, "/other"))(s.T); lines.Unknown != 0 {
			t.Errorf("contenders at another path: %+v", lines)
		}
	})
}
