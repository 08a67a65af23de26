package line_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
