package line_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// CURATOR-495, kazoo#381: blocking work in a callback stopped everything.
func TestABlockingCallbackStopsNoOther(t *testing.T) {
	srv := zktest.Embedded(t)
	s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	unblock, blocked := make(chan struct{}), make(chan struct{})
	slow := must.Get(s.Lock("/slow", recipes.LockConfig{Joined: func(recipes.Place) { close(blocked); <-unblock }}))(t)
	done := make(chan error, 1)
	go func() {
		hold, err := slow.Acquire(ctx)
		if err == nil {
			err = hold.Release(ctx)
		}
		done <- err
	}()
	<-blocked
	hold := must.Get(must.Get(s.Lock("/quick", recipes.LockConfig{}))(t).Acquire(ctx))(t)
	must.Report(t, hold.Release(ctx))
	close(unblock)
	must.Report(t, <-done)
}

// The tests in this file check the order of two requests where safety depends on it.

// orderOf returns the requests of a session in the order in which the server executes them.
func orderOf(srv *zkserver.Server, s recipes.Session) (requests func() []zkserver.Request) {
	var mu sync.Mutex
	var all []zkserver.Request
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.SessionID == s.ID() {
			all = append(all, r)
		}
		return zkserver.Fault{}
	})
	return func() []zkserver.Request {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func indexOf(all []zkserver.Request, path string, ops ...zkserver.Op) int {
	return slices.IndexFunc(all, func(r zkserver.Request) bool { return r.Path == path && slices.Contains(ops, r.Op) })
}

// As long as the leader's znode exists, a transaction that checks it can create znodes that are
// attached to it. So those are deleted after it.
func TestZnodesOfAHoldAreDeletedAfterIt(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		e := must.Get(s.Election("/e", recipes.ElectionConfig{}))(t)
		l := must.Get(e.Campaign(ctx, nil))(t)
		must.Do(t, l.Acknowledge(ctx, nil))
		ack := ""
		for _, n := range srv.Tree() {
			if strings.HasPrefix(n.Path, "/e/acks/") {
				ack = n.Path
			}
		}
		if ack == "" {
			t.Fatalf("there is no acknowledgement in %v", srv.Tree())
		}
		refused, late := 0, false
		srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			switch {
			case r.Op != zkserver.OpMulti && r.Op != zkserver.OpDelete:
			case r.Path == l.Znode():
				refused++
				f.CloseBefore = refused < 3
			case r.Path == ack:
				late = !zktest.Exists(srv, l.Znode())
			}
			return f
		})
		must.Do(t, l.Resign(ctx))
		if refused != 3 || !late || zktest.Exists(srv, ack) {
			t.Errorf("%s is deleted after %d attempts, and %s not after it", l.Znode(), refused, ack)
		}
	})
}

// A server sends events in the order of the changes. So a waiter that first watches its own place
// is notified of its deletion before a later change of its predecessor.
func TestAWaiterWatchesItsPlaceBeforeItsPredecessor(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		holder := must.Get(zktest.OpenVirtual(t, srv).Lock("/l", recipes.LockConfig{}))(t)
		h := must.Get(holder.Acquire(ctx))(t)
		l := must.Get(s.Lock("/l", recipes.LockConfig{}))(t)
		requests := orderOf(srv, s)
		got := make(chan error, 1)
		go func() {
			h, err := l.Acquire(ctx)
			if err == nil {
				err = h.Release(ctx)
			}
			got <- err
		}()
		synctest.Wait()
		all := requests()
		own := slices.IndexFunc(all, func(r zkserver.Request) bool { return r.Op == zkserver.OpSetWatches })
		ahead := indexOf(all, h.Znode(), zkserver.OpGetData)
		if own < 0 || ahead < own {
			t.Errorf("its place is watched by request %d, and its predecessor by %d: %v", own, ahead, all)
		}
		must.Report(t, errors.Join(h.Release(ctx), <-got))
	})
}

// A contender whose creation was not answered is found, whatever interrupts the search, and no znode
// is left.
func TestALostContenderIsFound(t *testing.T) {
	for name, hindered := range map[string]struct {
		strategy recipes.Strategy
		cfg      recipes.SessionConfig
		by       func(*zktest.Scene)
	}{
		"by its own ACL": {
			strategy: recipes.Handoff,
			cfg:      recipes.SessionConfig{ACL: []recipes.ACL{{Permissions: recipes.PermAll &^ recipes.PermRead, Scheme: "world", ID: "anyone"}}},
		},
		"by its own ACL, with a GUID": {
			strategy: recipes.Predecessor,
			cfg:      recipes.SessionConfig{ACL: []recipes.ACL{{Permissions: recipes.PermAll &^ recipes.PermRead, Scheme: "world", ID: "anyone"}}},
		},
		"by large data in the line": {
			strategy: recipes.Handoff,
			cfg:      recipes.SessionConfig{MaxPacket: 4 << 10},
			by: func(s *zktest.Scene) {
				for range 2 {
					must.Get(s.Raw.Create(s.Path+"/lock-", make([]byte, 64<<10), zk.FlagSequence, zk.WorldACL(zk.PermAll)))(s)
				}
			},
		},
		"by a listing too large": {
			strategy: recipes.Predecessor,
			cfg:      recipes.SessionConfig{MaxPacket: 4 << 10},
			by: func(s *zktest.Scene) {
				for i := range 100 {
					must.Get(s.Raw.Create(fmt.Sprintf("%s/%s-%d", s.Path, strings.Repeat("x", 100), i), nil, 0, zk.WorldACL(zk.PermAll)))(s)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				keep := s.Session()
				ahead := s.Hold(s.JoinWith(keep, recipes.Handoff))
				cfg := hindered.cfg
				cfg.Servers = []string{s.Addr}
				victim := must.Get(zookeeper.Open(s.Ctx, cfg))(s.T)
				s.Cleanup(func() { victim.Close(context.Background()) })
				lost, hindering := false, sync.OnceFunc(func() {
					if hindered.by != nil {
						hindered.by(s)
					}
				})
				srv.SetFault(func(r zkserver.Request) zkserver.Fault {
					switch {
					case r.SessionID != victim.ID():
					case zktest.Creates(r.Op) && !lost:
						lost = true
						return zkserver.Fault{DropReply: true}
					case r.Op == zkserver.OpSync: // the search begins
						hindering()
					}
					return zkserver.Fault{}
				})
				l := must.Get(victim.Lock(s.Path, recipes.LockConfig{Strategy: hindered.strategy}))(s.T)
				if _, err := l.TryAcquire(s.Ctx); err == nil {
					s.Error("granted")
				}
				if !lost {
					s.Fatal("the case was not met")
				}
				s.Release(ahead)
				left := func() (name string) {
					for _, n := range srv.Tree() {
						if n.Stat.EphemeralOwner == victim.ID() {
							name = n.Path
						}
					}
					return name
				}
				for left() != "" && s.Exists(s.Path) { // the contender may leave in the background
					if s.Ctx.Err() != nil {
						s.Fatalf("%s is left", left())
					}
				}
			})
		})
	}
}
