package line_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// fearblackcat/zkElection: the predecessor was deleted between the listing and the watch, and the
// candidate hung forever.
func TestAPredecessorThatVanishesBeforeItIsWatched(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		srv := zktest.Embedded(t)
		ctx := zktest.Bounded(t)
		holder, waiter := zktest.Open(t, srv), zktest.Open(t, srv)
		hold := must.Get(must.Get(holder.Lock("/vanish", recipes.LockConfig{}))(t).Acquire(ctx))(t)
		released := false
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == waiter.ID() && r.Op == zkserver.OpGetData && !released {
				released = true
				must.Report(t, hold.Release(ctx))
			}
			return zkserver.Fault{}
		})
		next := must.Get(must.Get(waiter.Lock("/vanish", recipes.LockConfig{Strategy: strategy}))(t).Acquire(ctx))(t)
		if !released {
			t.Fatal("the case was not met")
		}
		must.Report(t, next.Release(ctx))
	}
}

// CURATOR-190, 483: a retried create started from an already prefixed path.
func TestARetriedCreateStartsFromTheBaseName(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		srv := zktest.Embedded(t)
		s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
		tries := 0
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if !zktest.Creates(r.Op) || !zktest.Exists(srv, "/base") {
				return zkserver.Fault{}
			}
			if tries++; tries <= 3 {
				return zkserver.Fault{CloseBefore: true}
			}
			return zkserver.Fault{}
		})
		hold := must.Get(must.Get(s.Lock("/base", recipes.LockConfig{Strategy: strategy}))(t).Acquire(ctx))(t)
		protections := 1
		if strategy == recipes.Handoff {
			protections = 0
		}
		if n := strings.Count(hold.Znode(), "_c_"); n != protections || strings.Count(hold.Znode(), "/") != 2 {
			t.Errorf("%s: the znode is %s", strategy, hold.Znode())
		}
		must.Report(t, hold.Release(ctx))
		if tries < 4 {
			t.Fatalf("%s: %d creates: the case was not met", strategy, tries)
		}
	}
}

// etcd#22082: an unlock that was sent again deleted a newer lock of the same
// session.
func TestAReleaseSentAgainDoesNotHitTheNextHold(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		srv := zktest.Embedded(t)
		s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
		l := must.Get(s.Lock("/twice", recipes.LockConfig{Strategy: strategy}))(t)
		first := must.Get(l.Acquire(ctx))(t)
		deletes := 0
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op == zkserver.OpDelete || r.Op == zkserver.OpMulti {
				if deletes++; deletes == 1 {
					return zkserver.Fault{DropReply: true}
				}
			}
			return zkserver.Fault{}
		})
		released := make(chan error, 1)
		go func() { released <- first.Release(ctx) }()
		<-first.Done()
		second := must.Get(l.Acquire(ctx))(t)
		must.Do(t, <-released)
		if deletes < 1 || deletes < 2 && strategy != recipes.Handoff { // which reads before it sends again
			t.Fatalf("%d deletes: the case was not met", deletes)
		}
		if err := second.Write(ctx); err != nil {
			t.Errorf("the second hold: %v", err)
		}
		must.Report(t, second.Release(ctx))
	}
}

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

// CURATOR-308: the parent was reaped as an empty container, and the watch on it
// never fired.
func TestAnObserverSurvivesTheRemovalOfTheParent(t *testing.T) {
	srv := zktest.Embedded(t)
	s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	e := must.Get(s.Election("/reaped/election", recipes.ElectionConfig{}))(t)
	observed := must.Get(e.Observe(ctx))(t)
	if l := <-observed; !l.None() {
		t.Fatalf("first %+v", l)
	}
	for range 2 {
		leadership := must.Get(e.Campaign(ctx, []byte("me")))(t)
		if l := <-observed; l.Token != leadership.Token() {
			t.Fatalf("then %+v", l)
		}
		must.Do(t, leadership.Resign(ctx))
		if l := <-observed; !l.None() {
			t.Fatalf("then %+v", l)
		}
		srv.RunContainerCheck()
		srv.RunContainerCheck()
		if zktest.Exists(srv, "/reaped") {
			t.Fatal("the parent was not removed: the case was not met")
		}
	}
}

// CURATOR-604, 696: a client was granted by a znode of its expired session that the server had not
// deleted yet.
func TestNothingIsGrantedInASessionThatIsLost(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		srv := zktest.Embedded(t)
		s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
		// The session expires between the listing that shows the contender first and the read of
		// its own znode, or after the creation.
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == s.ID() && (r.Op == zkserver.OpGetData || r.Op == zkserver.OpExists) {
				return zkserver.Fault{ExpireAfter: true, DropReply: false}
			}
			return zkserver.Fault{}
		})
		hold, err := must.Get(s.Lock("/lost", recipes.LockConfig{Strategy: strategy}))(t).Acquire(ctx)
		if err == nil {
			// The reply was read before the connection ended. Then Done closes.
			select {
			case <-hold.Done():
			case <-ctx.Done():
				t.Fatal("the hold of an expired session is not lost")
			}
			err = hold.Err()
		}
		if !errors.Is(err, recipes.ErrSessionLost) {
			t.Fatalf("got %v", err)
		}
	}
}

// etcd#10111: if a cancellation raced with the grant, the call returned success after it had
// unlocked. If Acquire succeeds, the hold must exist.
func TestACancellationThatRacesWithTheGrant(t *testing.T) {
	srv := zktest.Embedded(t)
	s, other, ctx := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Bounded(t)
	for range 50 {
		l := must.Get(other.Lock("/race", recipes.LockConfig{}))(t)
		first := must.Get(l.Acquire(ctx))(t)
		cancelled, cancel := context.WithCancel(ctx)
		joined := make(chan struct{})
		waiter := must.Get(s.Lock("/race", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))(t)
		type result struct {
			hold recipes.Hold
			err  error
		}
		got := make(chan result, 1)
		go func() {
			hold, err := waiter.Acquire(cancelled)
			got <- result{hold, err}
		}()
		<-joined
		go cancel()
		must.Do(t, first.Release(ctx))
		r := <-got
		switch {
		case r.err == nil:
			if err := r.hold.Write(ctx); err != nil {
				t.Fatalf("acquired, and yet: %v", err)
			}
			must.Do(t, r.hold.Release(ctx))
		case !errors.Is(r.err, context.Canceled):
			t.Fatal(r.err)
		}
	}
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
		"by large data in the line": {
			strategy: recipes.Handoff,
			cfg:      recipes.SessionConfig{MaxPacket: 4 << 10},
			by: func(s *zktest.Scene) {
				for range 2 {
					if _, err := s.Raw.Create(s.Path+"/lock-", make([]byte, 64<<10), zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
						s.Fatal(err)
					}
				}
			},
		},
		"by a listing too large": {
			strategy: recipes.Predecessor,
			cfg:      recipes.SessionConfig{MaxPacket: 4 << 10},
			by: func(s *zktest.Scene) {
				for i := range 100 {
					if _, err := s.Raw.Create(fmt.Sprintf("%s/%s-%d", s.Path, strings.Repeat("x", 100), i), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
						s.Fatal(err)
					}
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
				for left() != "" && s.Exists(s.Path) { // it may leave in the background
					if s.Ctx.Err() != nil {
						s.Fatalf("%s is left", left())
					}
				}
			})
		})
	}
}
