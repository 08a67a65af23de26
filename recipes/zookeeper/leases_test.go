package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// These are about the semaphores of other libraries, which have leases and a lock.

func leasesOf(t *testing.T, s recipes.Session, d recipes.Dialect, permits int) recipes.Semaphore {
	t.Helper()
	return must[recipes.Semaphore](t)(s.Semaphore("/line", recipes.SemaphoreConfig{Permits: permits, Dialect: d}))
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
					all := must[[]recipes.Contender](t)(m.Contenders(s.ctx))
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
		onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Session) {
			must[recipes.Hold](t)(leasesOf(t, s, recipes.Curator, 1).Acquire(ctx))
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
		older := must[recipes.Hold](t)(leasesOf(t, s.session(), recipes.Curator, 2).Acquire(s.ctx))
		former := s.session()
		h := must[recipes.Hold](t)(leasesOf(t, former, recipes.Curator, 2).Acquire(s.ctx))
		next := move(t, s.addr, former)
		_, err := leasesOf(t, next, recipes.Curator, 2).(taker[recipes.Hold]).TakeUp(s.ctx, h.Znode(), h.Token()+1)
		s.is(err, recipes.ErrRemoved) // it does not count as older, and is another lease
		met := between(srv, next, reading(zkserver.OpExists, older.Znode()), func() { s.release(older) })
		_, err = leasesOf(t, next, recipes.Curator, 2).(taker[recipes.Hold]).TakeUp(s.ctx, h.Znode(), h.Token())
		if !met() || err != nil {
			t.Errorf("met %v, %v", met(), err)
		}
	})
}
