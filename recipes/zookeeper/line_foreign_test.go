package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// peers are contenders of this and other libraries: the znodes that they create at a path, and
// the error of a recipe that refuses them. The last znode is the contender's.
var peers = []struct {
	name   string
	want   recipes.ForeignError
	znodes []string // paths below the path; a sequence number is added to a name without one
}{
	{"a mutex", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Lock"}, []string{"/" + curatorMutex}}, // LeaderSelector and go-zookeeper's Lock too
	{"our lock", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Lock"}, []string{"/lock-"}},
	{"our election", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Election"}, []string{"/n_"}},
	{"our reader", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "SharedLock"}, []string{"/read-"}},
	{"our writer", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "SharedLock"}, []string{"/write-"}},
	{"our semaphore", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Semaphore"}, []string{"/lease-"}},
	{"our waiter with a priority", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "PriorityLock"}, []string{"/_c_x-read-05-"}},
	{"our holder with a priority", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "PriorityLock"}, []string{"/_c_x-writing-05-0000000007"}},
	{"ZooKeeper's WriteLock", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "WriteLock"}, []string{"/x--72057594037927936-"}},
	{"ZooKeeper's lock in C", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "WriteLock"}, []string{"/x-010000a1b2c3d4e5-"}},
	{"Curator's reader", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessReadWriteLock"}, []string{"/" + curatorRead}},
	{"Curator's writer", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessReadWriteLock"}, []string{"/" + curatorWrite}},
	{"LeaderLatch", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "LeaderLatch"}, []string{"/" + curatorLatch}},
	{"a lease of SemaphoreV2", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessSemaphoreV2"}, []string{"/locks", "/leases", zktest.ForeignLeases[0].Lease}},
	{"a lease of SemaphoreV2 whose locks are gone", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessSemaphoreV2"}, []string{"/leases", zktest.ForeignLeases[0].Lease}},
	{"a waiter of SemaphoreV2", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessSemaphoreV2"}, []string{"/leases", "/locks", zktest.ForeignLeases[0].Lock}},
	{"kazoo's lock", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Lock"}, []string{"/" + kazooLock}},
	{"kazoo's reader", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "ReadLock"}, []string{"/" + kazooRead}},
	{"kazoo's semaphore", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Semaphore"}, []string{"-__lock__", zktest.ForeignLeases[1].Lease}},
}

// dialected is a way in one of its dialects, with the peers that share its wait queue.
type dialected struct {
	way
	shares []string
}

func dialectedWays() (all []dialected) {
	for _, w := range tableOfWays() {
		for _, d := range recipes.Dialects() {
			if shares, ok := w.shares[d]; ok {
				all = append(all, dialected{wayTo(w.Name, d), shares})
			}
		}
	}
	return all
}

func (d dialected) String() string { return d.Name + " in " + string(d.options.Dialect) }

// createPeer creates the znodes of a contender below the path, and returns the last of them.
func createPeer(s *zktest.Scene, znodes []string) (znode string) {
	s.Helper()
	for i, name := range znodes {
		flags := int32(0)
		if i == len(znodes)-1 {
			flags = zk.FlagEphemeral
			if strings.HasSuffix(name, "-") || strings.HasSuffix(name, "_") {
				flags |= zk.FlagSequence
			}
		}
		znode = s.Make(s.Path+name, nil, flags)
	}
	return znode
}

// verdict returns what Contenders of the session predicts for a recipe at the path.
func verdict(s *zktest.Scene, session recipes.Recipes, kind recipes.Kind, d recipes.Dialect) *recipes.ForeignError {
	s.Helper()
	lines := must.Get(session.Contenders(s.Ctx, s.Path))(s.T)
	at := slices.IndexFunc(lines.Verdicts, func(v recipes.Verdict) bool { return v.Kind == kind && v.Dialect == d })
	if at < 0 || len(lines.Verdicts) != 13 {
		s.Fatalf("no verdict of %s in %s among %+v", kind, d, lines.Verdicts)
	}
	return lines.Verdicts[at].Foreign
}

// A recipe fails beside any contender that does not share its wait queue, and leaves nothing at
// the path. A contender that was refused never joined, so the same session can use the path in
// the dialect that the error names.
func TestARecipeRefusesWhatItSharesNoQueueWith(t *testing.T) {
	srv := zktest.Embedded(t)
	zktest.OnServer(t, srv, func(s *zktest.Scene) {
		for _, peer := range peers {
			t.Run("beside "+peer.name, func(t *testing.T) {
				s.T, s.Ctx, s.Path = t, zktest.Bounded(t), "/"+uuid.NewString()
				want := peer.want
				want.Znode = createPeer(s, peer.znodes)
				before, session := s.Children(s.Path), s.Session()
				for _, way := range dialectedWays() {
					if slices.Contains(way.shares, peer.name) {
						continue
					}
					if foretold := verdict(s, session, way.Kind, way.options.Dialect); foretold == nil || *foretold != want {
						t.Errorf("%s: predicted %v, want %v", way, foretold, &want)
					}
					var got *recipes.ForeignError
					if _, err := way.try(s.Ctx, session, s.Path); !errors.As(err, &got) || *got != want {
						t.Fatalf("%s: got %v, want %v", way, err, &want)
					}
					if after := s.Children(s.Path); !slices.Equal(after, before) {
						t.Errorf("%s: left %q of %q", way, after, before)
					}
					if data := s.Data(s.Path); len(data) > 0 {
						t.Errorf("%s: wrote %q to the path", way, data)
					}
				}
				for _, way := range dialectedWays() {
					if !slices.Contains(way.shares, peer.name) {
						continue
					}
					if foretold := verdict(s, session, way.Kind, way.options.Dialect); foretold != nil {
						t.Errorf("%s: they share a wait queue, but predicted %v", way, foretold)
					}
					_, err := way.try(s.Ctx, session, s.Path)
					if err != nil && !errors.Is(err, recipes.ErrContended) && !errors.Is(err, context.Canceled) {
						t.Errorf("%s: they share a wait queue, but got %v", way, err)
					}
					session = s.Session() // a session uses a path in one dialect
				}
			})
		}
	})
}

// Children that another program keeps at the path of a lock are not contenders. These are names
// of its own, GUIDs without kazoo's lock beside the path, and unused directories of Curator's
// semaphore.
func TestARecipeIgnoresChildrenThatAreNoContenders(t *testing.T) {
	guid := strings.ReplaceAll(uuid.NewString(), "-", "")
	for _, way := range dialectedWays() {
		semaphore, dialect := way.Kind == recipes.KindSemaphore, way.options.Dialect
		if dialect == recipes.Kazoo && semaphore {
			continue // kazoo's semaphore counts each child as a permit
		}
		for _, znodes := range [][]string{
			{"/leases"}, {"/leases", "/locks"}, {"/leases", "/leases/mine"}, {"/locks", "/locks/lock-0000000001"}, {"/" + guid}, {"/x-ray"}, {"/readers-05-x"}, {"/config"},
		} {
			if semaphore && (dialect == recipes.ZooKeeper && znodes[0] == "/"+guid || dialect == recipes.Curator && len(znodes) == 2) {
				continue // one refuses kazoo's leases by their names alone, the other has contenders there
			}
			zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
				for _, name := range znodes {
					s.Make(s.Path+name, nil, 0)
				}
				_, err := way.try(s.Ctx, s.Session(), s.Path)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("%s beside %q: %v", way, znodes, err)
				}
			})
		}
	}
}

// kazoo's contenders count each child of the path as a lease. So the unused directories of a
// Curator semaphore would keep our contender waiting for ever.
func TestAKazooSemaphoreRefusesTheDirectoriesOfCurators(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		s.Make(s.Path+"/locks", nil, 0)
		s.Make(s.Path+"/leases", nil, 0)
		m := must.Get(s.Session().Semaphore(s.Path, recipes.SemaphoreConfig{Permits: 2, Dialect: recipes.Kazoo}))(t)
		want := recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessSemaphoreV2", Znode: s.Path + "/leases"}
		var got *recipes.ForeignError
		if _, err := m.Acquire(s.Ctx); !errors.As(err, &got) || *got != want {
			t.Errorf("got %v, want %v", err, &want)
		}
	})
}

// While our contender in kazoo's dialect waits for a permit, a contender of another recipe
// joins. It is a child of the path too. Ours finds it when it counts, and leaves.
func TestAKazooSemaphoreSeesAThirdPartyWhileItWaits(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		open := func(joined func(recipes.Place)) recipes.Semaphore {
			return must.Get(s.Session().Semaphore(s.Path, recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Kazoo, Joined: joined}))(t)
		}
		first := must.Get(open(nil).Acquire(s.Ctx))(t)
		_, second := zktest.Waits(s.Ctx, func(joined func(recipes.Place)) func(context.Context) (recipes.Hold, error) {
			return open(joined).Acquire
		})
		theirs := s.Contender(curatorLatch)
		s.Is((<-second).Err, recipes.ErrForeign)
		releaseBeside(s, first)
		s.Alone(theirs)
	})
}

// The same applies to counters, queues and double barriers.
func TestARefusedRecipeLeavesTheDialectOpen(t *testing.T) {
	for _, tt := range []struct {
		name, znode, data string
		dialect           recipes.Dialect
		use               func(s *zktest.Scene, session recipes.Client, d recipes.Dialect) error
	}{
		{"counter", "", "\x00\x00\x00\x00\x00\x00\x00\x05", recipes.Curator, func(s *zktest.Scene, session recipes.Client, d recipes.Dialect) error {
			return failure(must.Get(session.Counter(s.Path, recipes.CounterConfig{Dialect: d}))(s.T).Get(s.Ctx))
		}},
		{"queue", "/qn-0000000000", "", recipes.Curator, func(s *zktest.Scene, session recipes.Client, d recipes.Dialect) error {
			return failure(must.Get(session.Queue(s.Path, recipes.QueueConfig{Dialect: d}))(s.T).Take(s.Ctx))
		}},
		{"double barrier", "/" + uuid.NewString(), "", recipes.Curator, func(s *zktest.Scene, session recipes.Client, d recipes.Dialect) error {
			return failure(must.Get(session.DoubleBarrier(s.Path, recipes.DoubleBarrierConfig{Size: 2, Dialect: d}))(s.T).Enter(s.Ctx, nil))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
				s.Make(s.Path+tt.znode, []byte(tt.data), 0)
				session := s.Session()
				s.Is(tt.use(s, session, ""), recipes.ErrForeign)
				s.Is(tt.use(s, session, tt.dialect), nil)
			})
		})
	}
}

// A third-party contender joins after a semaphore's contender has checked the path, and before
// it joins. The check after joining finds it.
func TestASemaphoreSeesAThirdPartyThatComesAsItJoins(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		session := s.Session()
		zktest.Between(srv, session, func(r zkserver.Request) bool { return strings.HasPrefix(r.Path, s.Path+"/locks/") }, func() { s.Contender(curatorLatch) })
		_, err := wayTo("semaphore", recipes.Curator).try(s.Ctx, session, s.Path)
		if met, ok := errors.AsType[*recipes.ForeignError](err); !ok || met.Recipe != "LeaderLatch" {
			t.Errorf("got %v", err)
		}
	})
}

// In Curator's dialect, the contender of a semaphore has no lease while it waits for the lock.
// Other recipes find its znode below the lock, even if it is the first contender of the path.
func TestTheFirstContenderOfACuratorSemaphoreIsSeen(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		s.Make(s.Path+zktest.ForeignLeases[0].Lock, nil, zk.FlagEphemeral|zk.FlagSequence)
		ctx, cancel := context.WithCancel(s.Ctx)
		defer cancel()
		_, left := wayTo("semaphore", recipes.Curator).start(ctx, s.Session(), s.Path)
		_, err := wayTo("lock", "").try(s.Ctx, s.Session(), s.Path)
		s.Is(err, recipes.ErrForeign)
		cancel()
		s.Is((<-left).Err, context.Canceled)
	})
}

// Below a chroot, the guard of a hold's writes and the update of a member are below the chroot too,
// and the holder finds a third party there.
func TestAHolderBelowAChroot(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		below := must.Get(zookeeper.Open(s.Ctx, recipes.SessionConfig{Servers: []string{s.Addr}, Chroot: "/app"}))(t)
		defer below.Close(s.Ctx)
		hold := s.Hold(s.JoinWith(below, recipes.Handoff))
		must.Do(t, hold.Write(s.Ctx, recipes.Create("/made", nil)))
		if !zktest.Exists(srv, "/app/made") {
			t.Error("the write is not below the chroot")
		}
		member := must.Get(must.Get(below.Group("/group", recipes.GroupConfig{Name: "me"}))(t).Join(s.Ctx, nil))(t)
		must.Do(t, member.Update(s.Ctx, []byte("new")))
		if data := s.Data("/app/group/me"); string(data) != "new" {
			t.Errorf("the data of the member is %q", data)
		}
		s.Path = "/app" + s.Path
		s.Contender(curatorLatch)
		s.Is(s.Lost(hold), recipes.ErrForeign)
		if zktest.Exists(srv, "/app"+hold.Znode()) {
			t.Error("the contender has not left")
		}
	})
}
