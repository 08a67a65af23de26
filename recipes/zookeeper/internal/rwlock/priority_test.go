package rwlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The session of a hold ends during HandOff. The error matches ErrNotHeld, as the error of every
// other call of the hold does. If only the reply is lost, HandOff finds out that it has succeeded.
func TestAHandOffThatMeetsAFault(t *testing.T) {
	for _, tt := range []struct {
		at    func(zkserver.Request) bool
		fault zkserver.Fault
		want  []error
	}{
		{func(zkserver.Request) bool { return true }, zkserver.Fault{ExpireBefore: true}, []error{recipes.ErrNotHeld, recipes.ErrSessionLost}},
		{zktest.Op(zkserver.OpMulti), zkserver.Fault{DropReply: true}, []error{nil}},
	} {
		zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
			waits := zktest.OpenVirtual(t, srv)
			h := must.Get(must.Get(s.PriorityLock("/s", recipes.PriorityLockConfig{}))(t).AcquireWrite(ctx))(t)
			successor, granted := zktest.Waits(ctx, func(joined func(recipes.Place)) func(context.Context) (recipes.PriorityHold, error) {
				return must.Get(waits.PriorityLock("/s", recipes.PriorityLockConfig{Joined: joined}))(t).AcquireWrite
			})
			synctest.Wait()
			srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
				if r.SessionID == s.ID() && tt.at(r) {
					f = tt.fault
				}
				return f
			})
			err := h.HandOff(ctx, successor.Znode)
			for _, want := range tt.want {
				if !errors.Is(err, want) {
					t.Errorf("%v; want %v", err, want)
				}
			}
			if err := (<-granted).Err; err != nil {
				t.Errorf("the waiter: %v", err)
			}
		})
	}
}

// After a claim of unknown outcome a waiter syncs before it reads. Another server may not show the
// claim yet, and the waiter would claim again.
func TestAClaimOfUnknownOutcomeIsFollowedByASync(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		l := must.Get(s.PriorityLock("/s", recipes.PriorityLockConfig{}))(t)
		must.Do(t, must.Get(l.AcquireWrite(ctx))(t).Release(ctx)) // creates the path
		var after []zkserver.Op
		srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			f.DropReply = r.Op == zkserver.OpMulti && len(after) == 0
			if (f.DropReply || len(after) > 0) && r.Path != "" {
				after = append(after, r.Op)
			}
			return f
		})
		must.Get(l.AcquireWrite(ctx))(t)
		if len(after) < 2 || after[1] != zkserver.OpSync {
			t.Errorf("the claim is followed by %v", after)
		}
	})
}

// A successor whose znode was deleted before its claim blocks no contender, and a later holder
// can name another successor. A holder cannot name a successor whose znode is gone.
func TestASuccessorThatIsGoneIsIgnored(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		type waiter struct {
			place   recipes.Place
			session recipes.Client
			granted chan recipes.PriorityHold
		}
		join := func() *waiter {
			w := &waiter{session: zktest.OpenVirtual(t, srv), granted: make(chan recipes.PriorityHold, 1)}
			joined := make(chan recipes.Place, 1)
			l := must.Get(w.session.PriorityLock("/s", recipes.PriorityLockConfig{Joined: func(p recipes.Place) { joined <- p }}))(t)
			go func() {
				if h, err := l.AcquireWrite(ctx); err == nil {
					w.granted <- h
				}
			}()
			w.place = <-joined
			synctest.Wait()
			return w
		}
		h := must.Get(must.Get(s.PriorityLock("/s", recipes.PriorityLockConfig{}))(t).AcquireWrite(ctx))(t)
		next, last, dies := join(), join(), join()
		proceed := make(chan struct{})
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == dies.session.ID() && r.Op == zkserver.OpMulti {
				return zkserver.Fault{Hold: proceed}
			}
			return zkserver.Fault{}
		})
		must.Do(t, h.HandOff(ctx, dies.place.Znode))
		if err := h.Err(); !errors.Is(err, recipes.ErrReleased) { // no watch was set on the znode, so HandOff itself must end the hold
			t.Errorf("the former holder got %v", err)
		}
		synctest.Wait() // dies has sent its claim
		srv.ExpireSession(dies.session.ID())
		close(proceed)
		h = <-next.granted
		srv.SetFault(nil)
		if err := h.HandOff(ctx, last.place.Znode); err != nil {
			t.Fatalf("handoff to another: %v", err)
		}
		if h = <-last.granted; h == nil {
			t.Fatal("the last one is not granted")
		}
		if err := h.HandOff(ctx, dies.place.Znode); !errors.Is(err, recipes.ErrNoNode) {
			t.Errorf("handoff to one that is gone: %v", err)
		}
		must.Report(t, h.Release(ctx))
	})
}

// After a write to its znode, a waiter reads the znode again. Its claim copies the new data.
func TestCostOfAWrittenPriorityWaiter(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		h := must.Get(must.Get(s.PriorityLock("/cost", recipes.PriorityLockConfig{}))(t).AcquireWrite(ctx))(t)
		place := make(chan recipes.Place, 1)
		waits := zktest.OpenVirtual(t, srv)
		l := must.Get(waits.PriorityLock("/cost", recipes.PriorityLockConfig{Joined: func(p recipes.Place) { place <- p }}))(t)
		granted := make(chan recipes.PriorityHold, 1)
		go func() {
			if h, err := l.AcquireWrite(ctx); err == nil {
				granted <- h
			}
		}()
		waiting := <-place
		synctest.Wait()
		for _, tt := range []struct {
			name string
			do   func() error
			want zktest.Cost
		}{
			{"its znode is written", func() error {
				return h.Write(ctx, recipes.Set(waiting.Znode, []byte("written"), recipes.AnyVersion))
			}, zktest.Cost{Reads: 5}},
			{"it is granted", func() error { return h.Release(ctx) }, zktest.Cost{Writes: 1, Reads: 4}},
		} {
			before := must.Get(waits.Stats(ctx))(t)
			must.Do(t, tt.do())
			synctest.Wait()
			after := must.Get(waits.Stats(ctx))(t)
			if got := (zktest.Cost{Writes: after.Writes - before.Writes, Reads: after.Reads - before.Reads}); got != tt.want {
				t.Errorf("%s: %v; want %v", tt.name, got, tt.want)
			}
		}
		h = <-granted
		if data := must.Get(l.Contenders(ctx))(t)[0].Data; string(data) != "written" {
			t.Errorf("the data of the holder is %q", data)
		}
	})
}
