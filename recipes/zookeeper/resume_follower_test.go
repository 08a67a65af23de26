package zookeeper_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// PITFALLS 61, for a resumed session. Its follower is cut off before anything is resumed, and
// still answers. The host relies on the contacts that the resumed session reports. So the
// session may report only contacts with the leader, even if it holds nothing yet.
func TestAResumedSessionReportsContactsThatTheLeaderKnows(t *testing.T) {
	const timeout = 4 * time.Second // the smallest: two ticks
	for phase := time.Duration(0); phase < timeout; phase += 130 * time.Millisecond {
		t.Run(phase.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.New(zkserver.Config{})
				defer srv.Close()
				first, waiter := zktest.LinkTo(srv.ServeConn).Open(t, timeout), zktest.LinkTo(srv.ServeConn).Open(t, timeout)
				zktest.Acquire(t, first)
				joined, granted := make(chan struct{}), make(chan struct{})
				l := must.Get(waiter.Lock("/deadline", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))(t)
				go func() {
					if _, err := l.Acquire(t.Context()); err != nil {
						t.Error(err)
					}
					close(granted)
				}()
				<-joined
				must.Do(t, first.(zktest.Movable).Detach(t.Context()))
				follower := srv.Follower()
				theirs := zktest.LinkTo(follower.ServeConn)
				cfg := recipes.SessionConfig{Servers: []string{"server"}, MaxPacket: 64 << 10}
				second := must.Get(zookeeper.Dialer(theirs.Dial).Resume(t.Context(), cfg, first.(zktest.Movable).ResumeTicket(), time.Now()))(t)
				time.Sleep(phase) // virtual
				theirs.Lead(nil)
				follower.CutOff()
				<-granted
				if age := time.Since(second.(interface{ KnownContact() time.Time }).KnownContact()); second.Err() == nil && age < timeout {
					t.Errorf("another session is granted, but the resumed session reports a contact with the leader %v ago", age)
				}
				follower.Crash()
				second.Close(t.Context())
				must.Report(t, waiter.Close(t.Context()))
			})
		})
	}
}

// After DropRest, a session that holds nothing sends the leader no requests.
func TestAResumedSessionThatHoldsNothingIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		way := zktest.LinkTo(srv.ServeConn)
		first := way.Open(t, 10*time.Second)
		must.Do(t, first.(zktest.Movable).Detach(t.Context()))
		cfg := recipes.SessionConfig{Servers: []string{"server"}, MaxPacket: 64 << 10}
		second := must.Get(zookeeper.Dialer(way.Dial).Resume(t.Context(), cfg, first.(zktest.Movable).ResumeTicket(), time.Now()))(t)
		for range 2 {
			must.Do(t, second.(zktest.Movable).DropRest(t.Context()))
		}
		inAMinute := func() int64 {
			time.Sleep(time.Minute) // virtual
			before := must.Get(second.Stats(t.Context()))(t).ByKind["sync"]
			time.Sleep(time.Minute)
			return must.Get(second.Stats(t.Context()))(t).ByKind["sync"] - before
		}
		if n := inAMinute(); n != 0 {
			t.Errorf("a session that holds nothing has asked the leader %d times", n)
		}
		hold := zktest.Acquire(t, second)
		if err := second.(zktest.Movable).DropRest(t.Context()); err != nil { // a repeated DropRest deletes nothing
			t.Fatal(err)
		}
		if n := inAMinute(); n == 0 || hold.Err() != nil {
			t.Errorf("a session that holds something has asked the leader %d times (%v)", n, hold.Err())
		}
		must.Report(t, second.Close(t.Context()))
	})
}
