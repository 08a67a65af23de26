package line_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A contender that may not read its own znode can neither watch nor guard it.
func TestAContenderThatMayNotReadItsOwnZnodeIsRefused(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx := zktest.Bounded(t)
	l := must.Get(zktest.Open(t, srv).Lock("/blind", recipes.LockConfig{}))(t)
	hold := must.Get(l.Acquire(ctx))(t) // makes the parent, open to all
	must.Do(t, hold.Release(ctx))
	blind := must.Get(zookeeper.Open(ctx, recipes.SessionConfig{
		Servers: []string{srv.Addr()},
		ACL:     []recipes.ACL{{Permissions: recipes.PermAll &^ recipes.PermRead, Scheme: "world", ID: "anyone"}},
	}))(t)
	_, err := must.Get(blind.Lock("/blind", recipes.LockConfig{Strategy: recipes.Predecessor}))(t).Acquire(ctx)
	if !errors.Is(err, recipes.ErrAccessDenied) {
		t.Fatalf("got %v", err)
	}
	// Its znode is deleted with its session.
	must.Do(t, blind.Close(ctx))
	hold = must.Get(l.Acquire(ctx))(t)
	must.Do(t, hold.Release(ctx))
}

// With a handoff, a contender can read its own znode, because its session's identity may. But its
// successor cannot watch that znode. The successor fails, instead of waiting for an event that the
// server would not send.
func TestAContenderThatMayNotReadItsPredecessorIsRefused(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		srv := zktest.Embedded(t)
		ctx := zktest.Bounded(t)
		blind := must.Get(zookeeper.Open(ctx, recipes.SessionConfig{
			Servers: []string{srv.Addr()},
			ACL:     []recipes.ACL{{Permissions: recipes.PermAll &^ recipes.PermRead, Scheme: "world", ID: "anyone"}},
			Digest:  &recipes.Digest{User: "blind", Password: "secret"}, // so its session has another identity
		}))(t)
		defer blind.Close(ctx)
		s := zktest.Open(t, srv)
		first := must.Get(must.Get(s.Lock("/dark", recipes.LockConfig{}))(t).Acquire(ctx))(t) // makes the parent
		must.Do(t, first.Release(ctx))
		hold := must.Get(must.Get(blind.Lock("/dark", recipes.LockConfig{Strategy: recipes.Handoff}))(t).Acquire(ctx))(t)
		_, err := must.Get(s.Lock("/dark", recipes.LockConfig{Strategy: strategy}))(t).Acquire(ctx)
		if !errors.Is(err, recipes.ErrAccessDenied) {
			t.Errorf("%s: got %v", strategy, err)
		}
		must.Report(t, hold.Release(ctx))
	}
}

// If the server refuses a guard for a reason other than a deleted znode, the error has no index of
// the caller's operations.
func TestAGuardThatIsRefusedIsNotTheCallersOperation(t *testing.T) {
	srv := zktest.Embedded(t)
	s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	hold := must.Get(must.Get(s.Lock("/guard", recipes.LockConfig{Strategy: recipes.Predecessor}))(t).Acquire(ctx))(t)
	raw := zktest.Raw(t, srv.Addr())
	must.Get(raw.SetACL(hold.Znode(), zk.WorldACL(zk.PermWrite), -1))(t)
	var refused *recipes.WriteError
	for _, ops := range [][]recipes.Op{nil, {recipes.Create("/x", nil)}} {
		if err := hold.Write(ctx, ops...); !errors.Is(err, recipes.ErrAccessDenied) || errors.As(err, &refused) {
			t.Errorf("got %v", err)
		}
	}
}

// An observer's watches do not accumulate with the leaders that it has observed.
func TestAnObserversWatchesDoNotPileUp(t *testing.T) {
	srv := zktest.Embedded(t)
	observer, s, ctx := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Bounded(t)
	e := must.Get(s.Election("/e", recipes.ElectionConfig{}))(t)
	observed := must.Get(must.Get(observer.Election("/e", recipes.ElectionConfig{}))(t).Observe(ctx))(t)
	for range 30 {
		leadership := must.Get(e.Campaign(ctx, nil))(t)
		for l := range observed {
			if l.Token == leadership.Token() {
				break
			}
		}
		must.Do(t, leadership.Resign(ctx))
		for l := range observed {
			if l.None() {
				break
			}
		}
	}
	if n := srv.Watches(); n > 3 {
		t.Errorf("%d watches after 30 leaders", n)
	}
}

// turnsOfACLs is how many turns TestALineHasOneACL takes: a few with every run of the
// tests, 10,000 with `.ci/suite acl`.
func turnsOfACLs(t *testing.T) int {
	value := os.Getenv("ZKRECIPES_ACL_TURNS")
	if value == "" {
		return 200
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("ZKRECIPES_ACL_TURNS is a number of turns, not %q", value)
	}
	return n
}

// A server keeps each ACL that is in use, and drops it with the last znode that has it. So all
// contenders of all sessions have one ACL, which is also that of their path. It is in use as
// long as the path exists.
func TestALineHasOneACL(t *testing.T) {
	addr, path := ensembletest.Start(t, ensembletest.Quick(1)).Addrs()[0], "/acl/line"
	raw := zktest.Raw(t, addr)
	const sessions = 5
	turns := turnsOfACLs(t)
	ofPath := make(map[string]bool)
	lists := make(map[string]string) // key: the ACL; value: the first znode that has it
	saw := func(znode string) {
		acl, _, err := raw.GetACL(znode)
		if err != nil {
			t.Errorf("getAcl %s: %v", znode, err)
		}
		list := fmt.Sprint(acl)
		if lists[list] == "" {
			lists[list] = znode
		}
		if znode == path {
			ofPath[list] = true
		}
	}
	var all sync.WaitGroup
	for range sessions {
		s := zktest.OpenAt(t, addr)
		all.Go(func() {
			l := must.Get(s.Lock(path, recipes.LockConfig{Strategy: recipes.Handoff}))(t)
			for range turns / sessions {
				h, err := l.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				saw(h.Znode()) // only the holder has seen it
				saw(path)
				must.Report(t, h.Release(t.Context()))
			}
		})
	}
	all.Wait()
	saw("/acl")
	for list, znode := range lists {
		if znode != "/acl" && !ofPath[list] {
			t.Errorf("%s has a list that its path has not: %s", znode, list)
		}
	}
	t.Logf("%d lists in %d turns", len(lists), turns)
	if len(lists) != 2 {
		t.Errorf("%d lists of permissions, want the one of a line and the one of everything else: %v", len(lists), lists)
	}
}

// If a session may not write its receipt, or the limit of a queue, it returns the refusal and does
// not repeat the write forever.
func TestADeniedWriteIsNotRetriedForEver(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx := zktest.Bounded(t)
	must.Get(zktest.CounterAt(t, zktest.Open(t, srv), "/n").Add(ctx, 1))(t)
	unwritten := must.Get(zookeeper.Open(ctx, recipes.SessionConfig{
		Servers: []string{srv.Addr()},
		ACL:     []recipes.ACL{{Permissions: recipes.PermAll &^ recipes.PermWrite, Scheme: "world", ID: "anyone"}},
	}))(t)
	defer unwritten.Close(ctx)
	if _, err := zktest.CounterAt(t, unwritten, "/n").Add(ctx, 1); !errors.Is(err, recipes.ErrAccessDenied) {
		t.Errorf("a counter: %v", err)
	}
	bounded := recipes.QueueConfig{Capacity: 2}
	q := must.Get(zktest.Open(t, srv).Queue("/q", bounded))(t)
	must.Get(q.Put(ctx, nil))(t)
	raw := zktest.Raw(t, srv.Addr())
	must.Get(raw.SetACL("/q/bound", zk.WorldACL(zk.PermRead), -1))(t)
	if _, err := q.Put(ctx, nil); !errors.Is(err, recipes.ErrAccessDenied) {
		t.Errorf("a queue: %v", err)
	}
	must.Get(raw.Create("/denied", nil, 0, zk.WorldACL(zk.PermRead)))(t)
	m := must.Get(zktest.Open(t, srv).Semaphore("/denied/m", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Kazoo}))(t)
	if _, err := m.TryAcquire(ctx); !errors.Is(err, recipes.ErrAccessDenied) {
		t.Errorf("a semaphore: %v", err)
	}
}
