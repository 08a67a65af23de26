package top

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestRequestsASecond counts, at the server, the requests of two rounds over 1,000 lines, one of
// which has 300 waiters. The server gets fewer than 200 in each second, and top leaves nothing
// behind.
func TestRequestsASecond(t *testing.T) {
	const lines, waiters = 1000, 300
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for i := range lines {
			lock := must.Get(s.Lock(fmt.Sprintf("/locks/%d", i), recipes.LockConfig{}))(t)
			must.Get(lock.Acquire(ctx))(t)
		}
		var waiting sync.WaitGroup
		other := zktest.OpenVirtual(t, srv)
		for range waiters {
			waiting.Go(func() {
				lock, err := other.Lock("/locks/7", recipes.LockConfig{Strategy: recipes.Predecessor})
				if err == nil {
					_, err = lock.Acquire(ctx)
				}
				if ctx.Err() == nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(2 * s.Timeout()) // until the holder watches all its paths
		synctest.Wait()
		watches, znodes := srv.Watches(), len(srv.Tree())

		a := &action{reads: 150}
		c := must.Get(zookeeper.Dialer(zktest.LinkTo(srv.ServeConn).Dial).Open(ctx, recipes.SessionConfig{Servers: []string{"server"}, ReadsPerSecond: a.reads}))(t)
		defer c.Close(context.WithoutCancel(ctx))
		var mu sync.Mutex
		var at []time.Time
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == c.ID() {
				mu.Lock()
				at = append(at, time.Now())
				mu.Unlock()
			}
			return zkserver.Fault{}
		})
		survey := newSurvey("/", asker{})
		for round := 1; round <= 2; round++ {
			began, before := time.Now(), srv.Counters()
			mu.Lock()
			at = nil
			mu.Unlock()
			n := rounds(t, survey, c)
			took := time.Since(began)
			most := 0
			for i := range at { // in the second that begins with this request
				in := 0
				for in < len(at)-i && at[i+in].Sub(at[i]) < time.Second {
					in++
				}
				most = max(most, in)
			}
			spent := srv.Counters().Sub(before)
			t.Logf("round %d: %d requests in %v, at most %d in a second", round, len(at), took, most)
			if most >= 200 || most < 100 {
				t.Errorf("round %d: %d requests in a second", round, most)
			}
			if spent.Requests[zkserver.OpCreate] > 0 || spent.Requests[zkserver.OpMulti] > 0 {
				t.Errorf("round %d writes: %v", round, spent.Requests)
			}
			most = 0
			for _, l := range n.lines {
				waiting, _ := l.waiters()
				most = max(most, waiting)
			}
			if len(n.lines) != lines || most != waiters {
				t.Errorf("round %d: %d lines, %d waiters", round, len(n.lines), most)
			}
			// Lines without changes cost one request each, and two for the root and /locks.
			if round == 2 && len(at) != lines+2 {
				t.Errorf("the second round took %d requests", len(at))
			}
		}
		if srv.Watches() != watches || len(srv.Tree()) != znodes {
			t.Errorf("%d watches and %d znodes; before %d and %d", srv.Watches(), len(srv.Tree()), watches, znodes)
		}
		srv.SetFault(nil)
		cancel()
		waiting.Wait()
	})
}

// TestALongLineAtTheDefaultRate: the line is read in a time that is acceptable to an operator.
func TestALongLineAtTheDefaultRate(t *testing.T) {
	const contenders = 6000
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		h := must.Get(must.Get(s.Lock("/line", recipes.LockConfig{}))(t).Acquire(ctx))(t)
		for at := range slices.Chunk(make([]recipes.Op, contenders), 300) {
			for i := range at {
				at[i] = recipes.Create("/line/_c_"+uuid.NewString()+fmt.Sprintf("-lock-%010d", 1+i), nil)
			}
			must.Do(t, h.Write(ctx, at...))
		}
		var a action
		flags := flag.NewFlagSet("top", flag.ContinueOnError)
		a.Flags(flags)
		must.Do(t, flags.Parse(nil))
		c := must.Get(zookeeper.Dialer(zktest.LinkTo(srv.ServeConn).Dial).Open(ctx, recipes.SessionConfig{Servers: []string{"server"}, ReadsPerSecond: a.reads}))(t)
		defer c.Close(context.WithoutCancel(ctx))
		began := time.Now()
		n := rounds(t, newSurvey("/line", asker{}), c)
		took := time.Since(began)
		if waiting, _ := n.lines[0].waiters(); waiting != contenders || took > contenders*time.Minute/60000 {
			t.Errorf("%d waiters, after %v", waiting, took)
		}
	})
}

// TestADeadlockOfRealContenders: it is shown once both wait, and disappears when one has given up.
func TestADeadlockOfRealContenders(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, a recipes.Client) {
		b := zktest.OpenVirtual(t, srv)
		must.Get(must.Get(a.Lock("/x", recipes.LockConfig{}))(t).Acquire(ctx))(t)
		must.Get(must.Get(b.SharedLock("/y", recipes.SharedLockConfig{}))(t).AcquireWrite(ctx))(t)
		survey, c := newSurvey("/", asker{}), zktest.OpenVirtual(t, srv)
		found := func() (texts []string) {
			for _, c := range rounds(t, survey, c).cycles {
				texts = append(texts, c.String())
			}
			return texts
		}
		waiting, stop := context.WithCancel(ctx)
		_ = zktest.Go(waiting, must.Get(a.SharedLock("/y", recipes.SharedLockConfig{}))(t).AcquireRead)
		synctest.Wait()
		if got := found(); got != nil {
			t.Errorf("before the second one waits: %q", got)
		}
		_ = zktest.Go(waiting, must.Get(b.Lock("/x", recipes.LockConfig{}))(t).Acquire)
		synctest.Wait()
		if got := found(); len(got) != 1 || !strings.Contains(got[0], "holds /x and waits for /y") || !strings.Contains(got[0], "holds /y and waits for /x") {
			t.Errorf("while they wait: %q", got)
		}
		stop()
		synctest.Wait()
		if got := found(); got != nil {
			t.Errorf("after they gave up: %q", got)
		}
	})
}
