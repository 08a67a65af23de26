package line_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// queued is a contender that has joined.
type queued struct {
	session recipes.Client
	granted chan recipes.Hold
}

// join opens a session that joins a shared lock, or a semaphore if permits is not 0.
func join(ctx context.Context, t *testing.T, srv *zkserver.Server, path string, mode recipes.Mode, permits int) *queued {
	t.Helper()
	c := &queued{session: zktest.OpenVirtual(t, srv), granted: make(chan recipes.Hold, 1)}
	joined := make(chan struct{})
	enter := func() (recipes.Hold, error) {
		onJoined := func(recipes.Place) { close(joined) }
		if permits > 0 {
			m := must.Get(c.session.Semaphore(path, recipes.SemaphoreConfig{Permits: permits, Joined: onJoined}))(t)
			return m.Acquire(ctx)
		}
		l := must.Get(c.session.SharedLock(path, recipes.SharedLockConfig{Joined: onJoined}))(t)
		if mode == recipes.Reading {
			return l.AcquireRead(ctx)
		}
		return l.AcquireWrite(ctx)
	}
	go func() {
		if h, err := enter(); err == nil {
			c.granted <- h
		} else {
			close(c.granted)
		}
	}()
	<-joined
	return c
}

func (c *queued) events(t *testing.T) int64 {
	return must.Get(c.session.Stats(context.Background()))(t).WatchEvents
}

func (c *queued) hold(t *testing.T) recipes.Hold {
	t.Helper()
	h := <-c.granted
	if h == nil {
		t.Fatal("not granted")
	}
	return h
}

// The release of a writer wakes all readers behind it, and no other waiter.
func TestWakeUpsOfASharedLock(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, _ recipes.Client) {
		first := join(ctx, t, srv, "/rw", recipes.Writing, 0).hold(t)
		var readers []*queued
		for range 5 {
			readers = append(readers, join(ctx, t, srv, "/rw", recipes.Reading, 0))
		}
		writer := join(ctx, t, srv, "/rw", recipes.Writing, 0)
		late := join(ctx, t, srv, "/rw", recipes.Reading, 0)
		zktest.Idle(t, srv)
		must.Do(t, first.Release(ctx))
		var holds []recipes.Hold
		for i, r := range readers {
			holds = append(holds, r.hold(t))
			if n := r.events(t); n != 1 {
				t.Errorf("reader %d woke %d times; want once", i, n)
			}
		}
		// The writer watches the last reader only.
		for _, h := range holds[:4] {
			must.Do(t, h.Release(ctx))
		}
		if w, l := writer.events(t), late.events(t); w != 0 || l != 0 {
			t.Errorf("the writer woke %d times, the reader behind it %d times; want neither", w, l)
		}
		must.Do(t, holds[4].Release(ctx))
		h := writer.hold(t)
		if w, l := writer.events(t), late.events(t); w != 1 || l != 0 {
			t.Errorf("the writer woke %d times, the reader behind it %d times; want 1 and 0", w, l)
		}
		must.Do(t, h.Release(ctx))
		late.hold(t)
	})
}

// The release of the i-th holder of a semaphore wakes i waiters, never more than there are permits.
func TestWakeUpsOfASemaphore(t *testing.T) {
	const permits, waiting = 3, 8
	for leaves := range permits {
		t.Run(fmt.Sprint(leaves), func(t *testing.T) {
			zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, _ recipes.Client) {
				var holds []recipes.Hold
				for range permits {
					holds = append(holds, join(ctx, t, srv, "/sem", "", permits).hold(t))
				}
				var all []*queued
				for range waiting {
					all = append(all, join(ctx, t, srv, "/sem", "", permits))
				}
				zktest.Idle(t, srv)
				before := srv.Counters()
				must.Do(t, holds[leaves].Release(ctx))
				all[0].hold(t)
				synctest.Wait() // the other waiters have read again
				woken := int64(0)
				for _, c := range all {
					woken += c.events(t)
				}
				if woken != int64(leaves+1) {
					t.Errorf("%d woke; want %d", woken, leaves+1)
				}
				d := srv.Counters().Sub(before)
				t.Logf("release of holder %d: %d writes, %d reads, %d events", leaves, d.Writes, d.Reads, woken)
				zktest.Idle(t, srv)
			})
		})
	}
}

// A reader is granted when the writer ahead has downgraded and the writer between the two has left,
// whatever the reader has watched until then.
func TestAReaderWakesWhenItsWayIsFree(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
			joined := make(chan struct{}, 3)
			contend := func(session recipes.Client) recipes.SharedLock {
				cfg := recipes.SharedLockConfig{Strategy: strategy, Joined: func(recipes.Place) { joined <- struct{}{} }}
				return must.Get(session.SharedLock(s.Path, cfg))(t)
			}
			writer := must.Get(contend(s.Session()).AcquireWrite(s.Ctx))(t)
			<-joined
			between, leave := context.WithCancel(s.Ctx)
			go contend(s.Session()).AcquireWrite(between)
			<-joined
			session := s.Session()
			reader := contend(session)
			let := make(chan error, 1)
			go func() {
				_, err := reader.AcquireRead(s.Ctx)
				let <- err
			}()
			<-joined
			looks := make(chan struct{})
			if strategy == recipes.Herd { // with the other strategies, each waiter watches only its neighbour
				var once sync.Once
				srv.SetFault(func(r zkserver.Request) zkserver.Fault {
					if r.SessionID == session.ID() && r.Op == zkserver.OpGetData && r.Path == writer.Znode() {
						once.Do(func() { close(looks) })
					}
					return zkserver.Fault{}
				})
			} else {
				close(looks)
			}
			must.Do(t, writer.Downgrade(s.Ctx))
			<-looks
			leave()
			if err := <-let; err != nil {
				t.Errorf("%s: %v", strategy, err)
			}
		})
	}
}
