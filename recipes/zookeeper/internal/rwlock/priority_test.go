package rwlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// A reader claims between a writer's listing and the writer's claim. The reader is granted. The
// writer's claim succeeds too, and the writer waits for the reader. If Ask is set, it asks a
// reader of lower priority to give way.
func TestAReaderClaimsBetweenAWritersReadAndItsClaim(t *testing.T) {
	for _, tt := range []struct {
		try, ask bool
		priority int // of the reader
	}{{priority: 0}, {try: true, priority: 0}, {ask: false, priority: 9}, {ask: true, priority: 9}} {
		try, early := tt.try, tt.priority > 5
		zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, w recipes.Client) {
			r := zktest.OpenVirtual(t, srv)
			writers := must.Get(w.PriorityLock("/between", recipes.PriorityLockConfig{Priority: 5, Ask: tt.ask}))(t)
			if err := must.Get(writers.AcquireWrite(ctx))(t).Release(ctx); err != nil { // creates the path
				t.Fatal(err)
			}
			type claim struct {
				once          sync.Once
				sent, proceed chan struct{}
			}
			writes, reads := &claim{sent: make(chan struct{}), proceed: make(chan struct{})}, &claim{sent: make(chan struct{}), proceed: make(chan struct{})}
			srv.SetFault(func(q zkserver.Request) (f zkserver.Fault) {
				if c := map[int64]*claim{w.ID(): writes, r.ID(): reads}[q.SessionID]; q.Op == zkserver.OpMulti {
					c.once.Do(func() { close(c.sent); f.Hold = c.proceed })
				}
				return f
			})
			acquired := make(chan recipes.PriorityHold, 1)
			readers := must.Get(r.PriorityLock("/between", recipes.PriorityLockConfig{Priority: tt.priority, Revocable: true}))(t)
			read := func() { acquired <- must.Get(readers.AcquireRead(ctx))(t) }
			if early {
				go read()
				<-reads.sent
			}
			acquire := writers.AcquireWrite
			if try {
				acquire = writers.TryWrite
			}
			type result struct {
				hold recipes.PriorityHold
				err  error
			}
			written := make(chan result, 1)
			go func(ctx context.Context) {
				h, err := acquire(ctx)
				written <- result{h, err}
			}(ctx)
			<-writes.sent
			close(reads.proceed)
			if !early {
				go read()
			}
			reader := <-acquired
			revoked := reader.Revoked()
			close(writes.proceed)
			if !try {
				synctest.Wait()
				select {
				case got := <-written:
					t.Fatalf("beside a reader the writer got %v, %v", got.hold, got.err)
				default:
				}
				if asked := session.Happened(revoked); asked != tt.ask {
					t.Errorf("the reader was asked to give way: %v", asked)
				}
				// No other contender can be granted.
				if _, err := readers.TryRead(ctx); !errors.Is(err, recipes.ErrContended) {
					t.Errorf("another reader: %v", err)
				}
				must.Do(t, reader.Release(ctx))
			}
			got := <-written
			if try && !errors.Is(got.err, recipes.ErrContended) || !try && got.err != nil {
				t.Errorf("the writer, try %v: %v", try, got.err)
			}
		})
	}
}

// A writer that has claimed and waits for a reader is not granted if another client has deleted
// its znode: another writer may have claimed since.
func TestAClaimThatIsRemovedIsNotGranted(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		contend := func(session recipes.Client, priority int) recipes.PriorityLock {
			return must.Get(session.PriorityLock(s.Path, recipes.PriorityLockConfig{Priority: priority}))(t)
		}
		victim := s.Session()
		writers := contend(victim, 5)
		if err := must.Get(writers.AcquireWrite(s.Ctx))(t).Release(s.Ctx); err != nil { // creates the path
			t.Fatal(err)
		}
		looked, proceed, claimed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var once, waits sync.Once
		srv.SetFault(func(q zkserver.Request) (f zkserver.Fault) {
			switch {
			case q.SessionID != victim.ID():
			case q.Op == zkserver.OpMulti:
				once.Do(func() { close(looked); f.Hold = proceed })
			case q.Op == zkserver.OpGetData && strings.Contains(q.Path, "-reading-"):
				waits.Do(func() { close(claimed) })
			}
			return f
		})
		written := make(chan error, 1)
		go func() {
			_, err := writers.AcquireWrite(s.Ctx)
			written <- err
		}()
		<-looked
		reader := must.Get(contend(s.Session(), 0).AcquireRead(s.Ctx))(t)
		close(proceed)
		<-claimed
		for _, n := range srv.Tree() {
			if strings.Contains(n.Path, "-writing-") {
				must.Do(t, s.Raw.Delete(n.Path, -1))
			}
		}
		must.Do(t, reader.Release(s.Ctx))
		if err := <-written; !errors.Is(err, recipes.ErrRemoved) {
			t.Errorf("the writer without a znode: %v", err)
		}
	})
}

// A successor whose znode was deleted before its claim blocks no contender, and a later holder
// can name another successor. A holder cannot name one whose znode is gone.
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
		synctest.Wait() // dies has sent its claim
		srv.ExpireSession(dies.session.ID())
		close(proceed)
		h = <-next.granted
		srv.SetFault(nil)
		if err := h.HandOff(ctx, last.place.Znode); err != nil {
			t.Errorf("handoff to another: %v", err)
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

// The session of a hold ends during HandOff. The error matches ErrNotHeld, as the error of every
// other call of the hold does.
func TestAHandOffWhoseSessionEndsIsNotHeld(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		waits := zktest.OpenVirtual(t, srv)
		joined := make(chan recipes.Place, 1)
		h := must.Get(must.Get(s.PriorityLock("/s", recipes.PriorityLockConfig{}))(t).AcquireWrite(ctx))(t)
		granted := make(chan error, 1)
		l := must.Get(waits.PriorityLock("/s", recipes.PriorityLockConfig{Joined: func(p recipes.Place) { joined <- p }}))(t)
		go func() {
			_, err := l.AcquireWrite(ctx)
			granted <- err
		}()
		successor := <-joined
		synctest.Wait()
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			return zkserver.Fault{ExpireBefore: r.SessionID == s.ID()}
		})
		err := h.HandOff(ctx, successor.Znode)
		if !errors.Is(err, recipes.ErrNotHeld) || !errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("%v; want ErrNotHeld and ErrSessionLost", err)
		}
		if err := <-granted; err != nil {
			t.Errorf("the waiter: %v", err)
		}
	})
}

// A waiter asks only holders of lower priority to give way.
func TestHoldersThatAreAskedToGiveWay(t *testing.T) {
	for priority, want := range map[int]bool{4: true, 5: false, 6: false} {
		zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
			holding := must.Get(s.PriorityLock("/ask", recipes.PriorityLockConfig{Priority: 5, Revocable: true, Grace: time.Hour}))(t)
			h := must.Get(holding.AcquireWrite(ctx))(t)
			asking := must.Get(zktest.OpenVirtual(t, srv).PriorityLock("/ask", recipes.PriorityLockConfig{Priority: priority, Ask: true}))(t)
			granted := make(chan recipes.PriorityHold, 1)
			go func() {
				if h, err := asking.AcquireWrite(ctx); err == nil {
					granted <- h
				}
			}()
			revoked := h.Revoked()
			synctest.Wait()
			asked := false
			select {
			case <-revoked:
				asked = true
			default:
			}
			if asked != want {
				t.Errorf("a waiter of priority %d asks a holder of priority 5: %v", priority, asked)
			}
			must.Do(t, h.Release(ctx))
			<-granted
		})
	}
}
