package lock_test

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Another contender may get the lock as soon as its znode is gone. If the first continued to
// wait with its lease, both would wait for ever.
func TestASemaphoreThatLosesItsLockGivesItsLeaseBack(t *testing.T) {
	for _, names := range zktest.ForeignLeases {
		zktest.OnBoth(t, func(s *zktest.Scene) {
			theirs := s.Make(s.Path+names.Lease, nil, zk.FlagEphemeral|names.Sequence)
			leases, locks := names.Dirs(s.Path)
			m := must.Get(s.Session().Semaphore(s.Path, recipes.SemaphoreConfig{Permits: 1, Dialect: names.Dialect}))(s.T)
			failed := zktest.Go(s.Ctx, m.Acquire)
			want := 1 // the number of leases when it waits
			if names.Dialect == recipes.Curator {
				want = 2
			}
			for len(s.Children(locks)) != 1 || len(s.Children(leases)) != want { // each listing is a round trip
				if s.Ctx.Err() != nil {
					s.Fatalf("it waits with %q and %q; want %d leases", s.Children(locks), s.Children(leases), want)
				}
			}
			must.Do(s, s.Raw.Delete(locks+"/"+s.Children(locks)[0], -1))
			s.Is((<-failed).Err, recipes.ErrRemoved)
			for s.Ctx.Err() == nil && len(s.Children(leases)) != 1 {
			}
			if all := s.Children(leases); len(all) != 1 || leases+"/"+all[0] != theirs {
				s.Errorf("left %q", all)
			}
		})
	}
}

// In Curator's dialect, a contender that cannot give the lock back gives its lease back. Its
// session then holds nothing, and sends no syncs.
func TestALeaseThatIsNotGrantedIsNotHeld(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, _ recipes.Client) {
		s := zktest.OpenVirtual(t, srv)
		sem := must.Get(s.Semaphore("/semaphore", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Curator}))(t)
		once, cancel := context.WithCancel(ctx)
		var told atomic.Bool
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op != zkserver.OpDelete || told.Load() {
				return zkserver.Fault{}
			}
			cancel()
			return zkserver.Fault{CloseBefore: true}
		})
		_, err := sem.Acquire(once)
		if told.Store(true); !errors.Is(err, context.Canceled) {
			t.Fatalf("acquire: %v", err)
		}
		time.Sleep(time.Minute)
		syncs := must.Get(s.Stats(ctx))(t).ByKind["sync"]
		time.Sleep(time.Minute)
		if more := must.Get(s.Stats(ctx))(t).ByKind["sync"]; more != syncs {
			t.Errorf("%d syncs in a minute in which nothing was held", more-syncs)
		}
		if h, err := sem.Acquire(ctx); err != nil {
			t.Errorf("the lease was not given back: %v", err)
		} else if err := h.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

// kazoo stores its permits as a bare number, which ours cannot read. If kazoo's contenders are
// present, the error names them, and not only the number.
func TestASemaphoreNamesKazoosContendersBeforeTheirPermits(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		s.Make(s.Path, []byte("2"), 0)
		theirs := s.Make(s.Path+zktest.ForeignLeases[1].Lease, nil, zk.FlagEphemeral)
		acquire := func() error {
			_, err := must.Get(s.Session().Semaphore(s.Path, recipes.SemaphoreConfig{Permits: 2}))(t).Acquire(s.Ctx)
			return err
		}
		s.Is(acquire(), recipes.ErrForeign)
		must.Do(s, s.Raw.Delete(theirs, -1))
		s.Is(acquire(), recipes.ErrMismatch)
	})
}

// kazoo's contenders fail on another number of permits in the path's data, and write it
// when they create the path.
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
		zktest.OnBoth(t, func(s *zktest.Scene) {
			s.Make(s.Path, []byte(tt.data), 0)
			err := takeTurnInKazoos(s)
			s.Is(err, tt.want)
			if left := string(s.Data(s.Path)); left != tt.left || len(s.Children(s.Path)) != 0 {
				s.Errorf("the data %q became %q, and the children are %q", tt.data, left, s.Children(s.Path))
			}
		})
	}
	zktest.OnBoth(t, func(s *zktest.Scene) {
		s.Is(takeTurnInKazoos(s), nil)
		if left := string(s.Data(s.Path)); left != "2" {
			s.Errorf("the path was created with %q", left)
		}
	})
}

// takeTurnInKazoos acquires a semaphore in kazoo's dialect, and releases it.
func takeTurnInKazoos(s *zktest.Scene) error {
	m := must.Get(s.Session().Semaphore(s.Path, recipes.SemaphoreConfig{Permits: 2, Dialect: recipes.Kazoo}))(s.T)
	h, err := m.Acquire(s.Ctx)
	if err != nil {
		return err
	}
	return h.Release(s.Ctx)
}

// The tests below are about the leases and the lock of other libraries' semaphores.

func leasesOf(t *testing.T, s recipes.Recipes, d recipes.Dialect, permits int) recipes.Semaphore {
	t.Helper()
	return must.Get(s.Semaphore("/line", recipes.SemaphoreConfig{Permits: permits, Dialect: d}))(t)
}

// Leases come first, in the order of their creation. The contender with the lock and the last
// lease waits with that lease. Each contender is read once, and nothing else is.
func TestTheContendersOfLeases(t *testing.T) {
	for _, names := range zktest.ForeignLeases {
		leases, locks := names.Dirs("/line")
		lease := func(s *zktest.Scene, guid string) string {
			name := strings.Repeat(guid, 32)
			if names.Dialect == recipes.Curator {
				name = "_c_" + name + "-lease-"
			}
			return s.Make(leases+"/"+name, nil, zk.FlagEphemeral|names.Sequence)
		}
		lock := func(s *zktest.Scene) string { return s.Make("/line"+names.Lock, nil, zk.FlagEphemeral|zk.FlagSequence) }
		for name, tt := range map[string]struct {
			create       func(s *zktest.Scene) []string // creates contenders, in the order of the listing
			holds, reads int
		}{
			"a lease": {func(s *zktest.Scene) []string {
				if names.Dialect == recipes.Kazoo { // a lease is recognized only beside a lock
					s.Make(locks, nil, 0)
				}
				return []string{lease(s, "a")}
			}, 1, 1},
			"a lease, and no contender that has had the lock": {func(s *zktest.Scene) []string {
				path := lease(s, "a")
				if names.Dialect == recipes.Kazoo { // without a lock, it may be a member of a double barrier
					return nil
				}
				return []string{path}
			}, 1, 1},
			"leases": {func(s *zktest.Scene) (all []string) {
				s.Make(locks, nil, 0)
				for _, guid := range []string{"f", "0", "e", "1", "d", "2"} {
					all = append(all, lease(s, guid))
				}
				if err := s.Raw.Delete(all[0], -1); err != nil { // makes the server list the others in another order
					s.Fatal(err)
				}
				return all[1:]
			}, 5, 5},
			"a lease and the lock of another session": {func(s *zktest.Scene) []string {
				s.Make("/line"+names.Lock, nil, zk.FlagSequence)
				return []string{lease(s, "a"), "/line" + names.Lock + "0000000000"}
			}, 1, 2},
			"the lock and no lease": {func(s *zktest.Scene) []string { return []string{lock(s)} }, 0, 1},
			"the lock and its only lease": {func(s *zktest.Scene) []string {
				lock(s)
				return []string{lease(s, "a")}
			}, 0, 2},
		} {
			t.Run(fmt.Sprintf("%s, %s", names.Dialect, name), func(t *testing.T) {
				zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
					s.T = t
					want := tt.create(s)
					m := leasesOf(t, s.Session(), names.Dialect, 2)
					before := srv.Counters()
					all := must.Get(m.Contenders(s.Ctx))(t)
					if n := srv.Counters().Sub(before).Requests[zkserver.OpGetData]; n != int64(tt.reads) {
						t.Errorf("%d reads; want %d", n, tt.reads)
					}
					if len(all) != len(want) {
						t.Fatalf("%+v; want %q", all, want)
					}
					for i, c := range all {
						if c.Znode != want[i] || c.Holds != (i < tt.holds) {
							t.Errorf("contender %d is %s, holds %v; want %s", i, c.Znode, c.Holds, want[i])
						}
					}
				})
			})
		}
	}
}

// Other contenders count the lease of a try. So a try that finds no permit returns only after
// its lease is gone. If its context ends first, the error says that too.
func TestATryThatIsRefusedHasGivenItsLeaseBack(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
			must.Get(leasesOf(t, s, recipes.Curator, 1).Acquire(ctx))(t)
			other, leave := zktest.OpenVirtual(t, srv), make(chan struct{})
			srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
				if r.SessionID == other.ID() && r.Op == zkserver.OpDelete && strings.Contains(r.Path, "/leases/") {
					f.Hold = leave
				}
				return f
			})
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			returned := zktest.Go(ctx, leasesOf(t, other, recipes.Curator, 1).TryAcquire)
			synctest.Wait()
			select {
			case e := <-returned:
				t.Fatalf("returned %v while its lease exists", e.Err)
			default:
			}
			if cancelled {
				cancel()
			} else {
				close(leave)
			}
			err := (<-returned).Err
			if !errors.Is(err, recipes.ErrContended) || errors.Is(err, context.Canceled) != cancelled {
				t.Errorf("cancelled %v: %v", cancelled, err)
			}
			if cancelled {
				close(leave)
			}
		})
	}
}

// An older lease that is given back while the leases are counted does not prevent the resume.
func TestALeaseIsResumedWhenAnOlderOneIsGivenBack(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		older := must.Get(leasesOf(t, s.Session(), recipes.Curator, 2).Acquire(s.Ctx))(t)
		former := s.Session()
		h := must.Get(leasesOf(t, former, recipes.Curator, 2).Acquire(s.Ctx))(t)
		next := zktest.Move(t, s.Addr, former)
		_, err := leasesOf(t, next, recipes.Curator, 2).(zktest.Taker[recipes.Hold]).Resume(s.Ctx, h.Znode(), h.Token()+1)
		s.Is(err, recipes.ErrRemoved) // the znode is another lease, which does not count as older
		met := zktest.Between(srv, next, zktest.Op(zkserver.OpExists, older.Znode()), func() { s.Release(older) })
		_, err = leasesOf(t, next, recipes.Curator, 2).(zktest.Taker[recipes.Hold]).Resume(s.Ctx, h.Znode(), h.Token())
		if !met() || err != nil {
			t.Errorf("met %v, %v", met(), err)
		}
	})
}

// A contender of Curator's semaphore creates its lease before it has a permit. Such a lease is
// not resumed as a permit, and DropRest deletes it.
func TestALeaseThatWaitsIsNotResumed(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		semaphore := func(in recipes.Client) recipes.Semaphore {
			return must.Get(in.Semaphore(s.Path, recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Curator}))(t)
		}
		must.Get(semaphore(s.Session()).Acquire(s.Ctx))(t)
		waiter := s.Session()
		waits := zktest.Go(s.Ctx, semaphore(waiter).Acquire)
		lease, czxid := "", int64(0)
		for lease == "" {
			for _, name := range s.Children(s.Path + "/leases") {
				if _, stat, err := s.Raw.Get(s.Path + "/leases/" + name); err == nil && stat.EphemeralOwner == waiter.ID() {
					lease, czxid = s.Path+"/leases/"+name, stat.Czxid
				}
			}
			time.Sleep(time.Millisecond)
		}
		next := zktest.Move(t, s.Addr, waiter)
		if err := (<-waits).Err; err == nil {
			t.Error("acquired")
		}
		again := semaphore(next).(interface {
			zktest.Taker[recipes.Hold]
			ResumeWaiting(context.Context, string, bool) (recipes.Hold, error)
		})
		_, err := again.Resume(s.Ctx, lease, recipes.Token(czxid))
		s.Is(err, recipes.ErrNotHeld)
		_, err = again.ResumeWaiting(s.Ctx, s.Path+"/locks/"+s.Children(s.Path + "/locks")[0], false)
		s.Is(err, recipes.ErrUnsupported)
		must.Report(t, next.(zktest.Movable).DropRest(s.Ctx))
		if names := s.Children(s.Path + "/leases"); len(names) != 1 {
			t.Errorf("the leases are %q", names)
		}
	})
}

// kazoo's contenders wait until there are fewer leases than permits. A lease that waits
// would keep them waiting.
func TestAContenderOfKazoosSemaphoreWaitsWithoutALease(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		open := func(s recipes.Client) recipes.Semaphore {
			return must.Get(s.Semaphore("/s", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Kazoo}))(t)
		}
		first := must.Get(open(s).Acquire(ctx))(t)
		second, next := open(zktest.OpenVirtual(t, srv)), make(chan recipes.Hold, 1)
		go func() { next <- must.Get(second.Acquire(ctx))(t) }()
		synctest.Wait()
		if leases := strings.Fields(zktest.Shape(srv, "/s")); len(leases) != 1 {
			t.Errorf("there are %q while one waits", leases)
		}
		must.Report(t, errors.Join(first.Release(ctx), (<-next).Release(ctx)))
	})
}

// The name of a lease shows that it is ours, so holders of other recipes are not ended by it.
func TestALeaseShowsThatItIsOurs(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		for _, d := range recipes.Dialects() {
			m := must.Get(s.Session().Semaphore(s.Path+string(d), recipes.SemaphoreConfig{Permits: 2, Dialect: d, Strategy: recipes.Predecessor}))(t)
			if znode := must.Get(m.Acquire(s.Ctx))(t).Znode(); !session.Ours(gopath.Base(znode)) {
				t.Errorf("%s: %s", d, znode)
			}
		}
	})
}
