package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// kazoo's contenders make their path as one that stays, look for it once, and fail with
// NoNodeError when it has gone. A container goes as soon as it is empty.
func TestThePathOfKazoosContendersStays(t *testing.T) {
	for name, use := range map[string]func(ctx context.Context, s recipes.Client, path string) error{
		"lock": func(ctx context.Context, s recipes.Client, path string) error {
			return taken(ctx, enterLock(""), s, path)
		},
		"reader": func(ctx context.Context, s recipes.Client, path string) error {
			return taken(ctx, enterShared(recipes.Reading), s, path)
		},
		"election": func(ctx context.Context, s recipes.Client, path string) error {
			return taken(ctx, enterElection, s, path)
		},
		"semaphore": func(ctx context.Context, s recipes.Client, path string) error {
			return taken(ctx, enterKazooSemaphore, s, path)
		},
		"group": func(ctx context.Context, s recipes.Client, path string) error {
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
		"queue": func(ctx context.Context, s recipes.Client, path string) error {
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
func taken(ctx context.Context, enter enter, s recipes.Client, path string) error {
	_, release, err := enter(ctx, s, path, recipes.Kazoo, false)
	if err != nil {
		return err
	}
	return release(ctx)
}

func enterKazooSemaphore(ctx context.Context, s recipes.Client, path string, _ recipes.Dialect, _ bool) (recipes.Grant, func(context.Context) error, error) {
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
		acquire := func() error {
			_, err := must.Get(s.session().Semaphore(s.path, recipes.SemaphoreConfig{Permits: 2}))(t).Acquire(s.ctx)
			return err
		}
		s.is(acquire(), recipes.ErrForeign)
		if err := s.raw.Delete(theirs, -1); err != nil {
			s.Fatal(err)
		}
		s.is(acquire(), recipes.ErrMismatch)
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
			err := takeTurnInKazoos(s)
			s.is(err, tt.want)
			if left := string(s.data(s.path)); left != tt.left || len(s.children(s.path)) != 0 {
				s.Errorf("of %q it has left %q, and %q", tt.data, left, s.children(s.path))
			}
		})
	}
	onBoth(t, func(s *scene) {
		s.is(takeTurnInKazoos(s), nil)
		if left := string(s.data(s.path)); left != "2" {
			s.Errorf("it has made the path with %q", left)
		}
	})
}

// takeTurnInKazoos acquires a semaphore in kazoo's dialect, and releases it.
func takeTurnInKazoos(s *scene) error {
	m := must.Get(s.session().Semaphore(s.path, recipes.SemaphoreConfig{Permits: 2, Dialect: recipes.Kazoo}))(s.T)
	h, err := m.Acquire(s.ctx)
	if err != nil {
		return err
	}
	return h.Release(s.ctx)
}

// These are about the semaphores of other libraries, which have leases and a lock.

func leasesOf(t *testing.T, s recipes.Recipes, d recipes.Dialect, permits int) recipes.Semaphore {
	t.Helper()
	return must.Get(s.Semaphore("/line", recipes.SemaphoreConfig{Permits: permits, Dialect: d}))(t)
}

// Leases come first, in the order of their creation. Whoever has the lock and the last
// lease waits with it. Each contender is read once, and nothing else is.
func TestTheContendersOfLeases(t *testing.T) {
	for _, names := range foreignLeases {
		leases, locks := names.dirs("/line")
		lease := func(s *scene, guid string) string {
			name := strings.Repeat(guid, 32)
			if names.dialect == recipes.Curator {
				name = "_c_" + name + "-lease-"
			}
			return s.make(leases+"/"+name, nil, zk.FlagEphemeral|names.sequence)
		}
		lock := func(s *scene) string { return s.make("/line"+names.lock, nil, zk.FlagEphemeral|zk.FlagSequence) }
		for name, tt := range map[string]struct {
			stand        func(s *scene) []string // in the order in which they are to be shown
			holds, reads int
		}{
			"a lease": {func(s *scene) []string {
				if names.dialect == recipes.Kazoo { // whose lease is known by the lock
					s.make(locks, nil, 0)
				}
				return []string{lease(s, "a")}
			}, 1, 1},
			"a lease and nobody who has had the lock": {func(s *scene) []string {
				path := lease(s, "a")
				if names.dialect == recipes.Kazoo { // it may be a member of a double barrier
					return nil
				}
				return []string{path}
			}, 1, 1},
			"leases": {func(s *scene) (all []string) {
				s.make(locks, nil, 0)
				for _, guid := range []string{"f", "0", "e", "1", "d", "2"} {
					all = append(all, lease(s, guid))
				}
				if err := s.raw.Delete(all[0], -1); err != nil { // and the server lists in another order
					s.Fatal(err)
				}
				return all[1:]
			}, 5, 5},
			"a lease and the lock of another session": {func(s *scene) []string {
				s.make("/line"+names.lock, nil, zk.FlagSequence)
				return []string{lease(s, "a"), "/line" + names.lock + "0000000000"}
			}, 1, 2},
			"the lock and no lease": {func(s *scene) []string { return []string{lock(s)} }, 0, 1},
			"the lock and its only lease": {func(s *scene) []string {
				lock(s)
				return []string{lease(s, "a")}
			}, 0, 2},
		} {
			t.Run(fmt.Sprintf("%s, %s", names.dialect, name), func(t *testing.T) {
				onEmbedded(t, func(s *scene, srv *zkserver.Server) {
					s.T = t
					want := tt.stand(s)
					m := leasesOf(t, s.session(), names.dialect, 2)
					before := srv.Counters()
					all := must.Get(m.Contenders(s.ctx))(t)
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

// A try that finds no permit returns when its lease is gone, which would count for others.
// If its context ends first, it says so too.
func TestATryThatIsRefusedHasGivenItsLeaseBack(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
			must.Get(leasesOf(t, s, recipes.Curator, 1).Acquire(ctx))(t)
			other, leave := openVirtual(t, srv), make(chan struct{})
			srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
				if r.SessionID == other.ID() && r.Op == zkserver.OpDelete && strings.Contains(r.Path, "/leases/") {
					f.Hold = leave
				}
				return f
			})
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			returned := make(chan error, 1)
			go func() {
				_, err := leasesOf(t, other, recipes.Curator, 1).TryAcquire(ctx)
				returned <- err
			}()
			synctest.Wait()
			select {
			case err := <-returned:
				t.Errorf("returned %v while its lease stands", err)
				returned <- err
			default:
			}
			if cancelled {
				cancel()
			} else {
				close(leave)
			}
			err := <-returned
			if !errors.Is(err, recipes.ErrContended) || errors.Is(err, context.Canceled) != cancelled {
				t.Errorf("cancelled %v: %v", cancelled, err)
			}
			if cancelled {
				close(leave)
			}
		})
	}
}

// An older lease that is given back while the leases are counted does not count.
func TestALeaseIsTakenUpWhenAnOlderOneIsGivenBack(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		older := must.Get(leasesOf(t, s.session(), recipes.Curator, 2).Acquire(s.ctx))(t)
		former := s.session()
		h := must.Get(leasesOf(t, former, recipes.Curator, 2).Acquire(s.ctx))(t)
		next := move(t, s.addr, former)
		_, err := leasesOf(t, next, recipes.Curator, 2).(taker[recipes.Hold]).Resume(s.ctx, h.Znode(), h.Token()+1)
		s.is(err, recipes.ErrRemoved) // it does not count as older, and is another lease
		met := between(srv, next, reading(zkserver.OpExists, older.Znode()), func() { s.release(older) })
		_, err = leasesOf(t, next, recipes.Curator, 2).(taker[recipes.Hold]).Resume(s.ctx, h.Znode(), h.Token())
		if !met() || err != nil {
			t.Errorf("met %v, %v", met(), err)
		}
	})
}

// A contender of Curator's makes its lease before it may have it. Such a lease is not
// taken up as a permit, and its contender does not keep its place.
func TestALeaseThatWaitsIsNotTakenUp(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		semaphore := func(in recipes.Client) recipes.Semaphore {
			return must.Get(in.Semaphore(s.path, recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Curator}))(t)
		}
		must.Get(semaphore(s.session()).Acquire(s.ctx))(t)
		waiter := s.session()
		waits := make(chan error, 1)
		go func() {
			_, err := semaphore(waiter).Acquire(s.ctx)
			waits <- err
		}()
		lease, czxid := "", int64(0)
		for lease == "" {
			for _, name := range s.children(s.path + "/leases") {
				if _, stat, err := s.raw.Get(s.path + "/leases/" + name); err == nil && stat.EphemeralOwner == waiter.ID() {
					lease, czxid = s.path+"/leases/"+name, stat.Czxid
				}
			}
			time.Sleep(time.Millisecond)
		}
		next := move(t, s.addr, waiter)
		if err := <-waits; err == nil {
			t.Error("acquired")
		}
		again := semaphore(next).(interface {
			taker[recipes.Hold]
			ResumeWaiting(context.Context, string, bool) (recipes.Hold, error)
		})
		_, err := again.Resume(s.ctx, lease, recipes.Token(czxid))
		s.is(err, recipes.ErrNotHeld)
		_, err = again.ResumeWaiting(s.ctx, s.path+"/locks/"+s.children(s.path + "/locks")[0], false)
		s.is(err, recipes.ErrUnsupported)
		if err := next.(movable).DropRest(s.ctx); err != nil {
			t.Error(err)
		}
		if names := s.children(s.path + "/leases"); len(names) != 1 {
			t.Errorf("the leases are %q", names)
		}
	})
}
