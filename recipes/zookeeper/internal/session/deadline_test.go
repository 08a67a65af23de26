package session_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// CURATOR-460: the loss timer started when the connection was suspended, not at the last contact,
// and there were two leaders. etcd#11456 and others: a holder that is cut off continues. Here the
// network fails at every phase of the ping cycle, on virtual time. The holder's Done must close
// before the next contender is granted.
func TestAHolderThatIsCutOffKnowsItBeforeTheNextIsGranted(t *testing.T) {
	const timeout = 9 * time.Second // pings every third
	for phase := time.Duration(0); phase < timeout; phase += 350 * time.Millisecond {
		t.Run(phase.String(), func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				srv := zkserver.New(zkserver.Config{})
				defer srv.Close()
				cutOff := zktest.LinkTo(srv.ServeConn)
				holder, waiter := cutOff.Open(t, timeout), zktest.LinkTo(srv.ServeConn).Open(t, timeout)
				hold := zktest.Acquire(t, holder)
				joined := make(chan struct{})
				granted := make(chan time.Time, 1)
				l := must.Get(waiter.Lock("/deadline", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))(t)
				go func() {
					next, err := l.Acquire(t.Context())
					if err != nil {
						t.Error(err)
					} else if hold.Err() == nil {
						t.Error("granted before the holder's Done has closed")
					} else if next.Token() <= hold.Token() {
						t.Errorf("token %d after %d", next.Token(), hold.Token())
					}
					granted <- time.Now()
				}()
				<-joined
				lost := hold.Done()
				time.Sleep(phase) // virtual: sets the phase
				cutOff.Dead.Store(true)
				cut := time.Now()
				<-lost
				closed := time.Now()
				next := <-granted
				if !closed.Before(next) {
					t.Errorf("Done closed %v after the cut, the next contender was granted %v after it", closed.Sub(cut), next.Sub(cut))
				}
				if err := hold.Err(); !errors.Is(err, recipes.ErrDeadline) || !errors.Is(err, recipes.ErrNotHeld) {
					t.Errorf("lost with %v", err)
				}
				if closed.Sub(cut) > timeout {
					t.Errorf("Done closed only %v after the cut", closed.Sub(cut))
				}
				must.Report(t, waiter.Close(t.Context()))
				if err := holder.Close(t.Context()); err == nil {
					t.Error("a session that was lost on its own clock says that the server has closed it")
				}
			})
		})
	}
}

// If a session is lost by its own deadline while requests still reach the server, it closes itself
// there. So the next contender need not wait for the expiry.
func TestASessionWithoutAnswersIsClosedAtTheServer(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		n := zktest.LinkTo(srv.ServeConn)
		open := func(n *zktest.Link) recipes.Client {
			return must.Get(zookeeper.Dialer(n.Dial).Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, MaxPacket: 64 << 10}))(t)
		}
		deaf, next := open(n), open(zktest.LinkTo(srv.ServeConn))
		hold := zktest.Acquire(t, deaf)
		n.Deaf.Store(true)
		<-hold.Done()
		lost := time.Now()
		zktest.Acquire(t, next)
		if waited := time.Since(lost); waited > 0 {
			t.Errorf("the next one waited for %v after the loss", waited)
		}
		next.Close(t.Context())
		deaf.Close(t.Context())
	})
}

// PITFALLS 62: the timer was set with the old timeout.
func TestAResumedSessionThatIsGrantedASmallerTimeoutIsLostByThat(t *testing.T) {
	for name, holds := range map[string]bool{"that holds something": true, "that holds nothing": false} {
		t.Run("of a session "+name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				const before, after = 30 * time.Second, 4 * time.Second
				srv := zkserver.New(zkserver.Config{MaxSessionTimeout: before})
				defer srv.Close()
				var down atomic.Bool
				dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
					if down.Load() {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return pipe(srv), nil
				}
				s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: before, MaxPacket: 64 << 10}, dial))(t)
				defer closeNow(s)
				if holds {
					beginHold(t, s)
					defer s.EndHold()
				}
				time.Sleep(before) // virtual
				srv.SetMaxSessionTimeout(after)
				cutAndWait(t, srv, s)
				if got := s.Timeout(); got != after {
					t.Errorf("Timeout is %v; the server has granted %v", got, after)
				}
				time.Sleep(2 * after)
				if err := s.Err(); err != nil {
					t.Fatalf("lost though all is well: %v", err)
				}
				down.Store(true)
				srv.CloseAllConnections()
				cut := time.Now()
				select {
				case <-s.Done():
				case <-time.After(2 * before):
					t.Fatal("never lost")
				}
				if took := time.Since(cut); took >= after {
					t.Errorf("lost %v after the server could not be reached any more; the timeout is %v", took, after)
				}
				if err := s.Err(); !errors.Is(err, recipes.ErrDeadline) {
					t.Errorf("lost with %v", err)
				}
			})
		})
	}
}

// Jepsen's lock tests, etcd#10811: a holder that was paused continues to write. Nothing in its
// process can prevent that. The guarded write does.
func TestALateHoldersWriteIsRefused(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx := zktest.Bounded(t)
	late, next := zktest.Open(t, srv), zktest.Open(t, srv)
	hold := must.Get(must.Get(late.Lock("/late", recipes.LockConfig{}))(t).Acquire(ctx))(t)
	must.Do(t, hold.Write(ctx, recipes.Create("/data", []byte("first"))))
	// The server grants the lock to the next contender just before the late holder's write
	// arrives, which was sent before the holder could notice.
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID != late.ID() || r.Op != zkserver.OpMulti {
			return zkserver.Fault{}
		}
		return zkserver.Fault{ExpireBefore: true}
	})
	err := hold.Write(ctx, recipes.Set("/data", []byte("late"), recipes.AnyVersion))
	if !errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Fatalf("the late write: %v", err)
	}
	second := must.Get(must.Get(next.Lock("/late", recipes.LockConfig{}))(t).Acquire(ctx))(t)
	if second.Token() <= hold.Token() {
		t.Errorf("token %d after %d", second.Token(), hold.Token())
	}
	for _, n := range srv.Tree() {
		if n.Path == "/data" && string(n.Data) != "first" {
			t.Errorf("the late holder wrote %q", n.Data)
		}
	}
	if err := hold.Write(ctx, recipes.Set("/data", []byte("later"), recipes.AnyVersion)); !errors.Is(err, recipes.ErrNotHeld) {
		t.Errorf("a later write: %v", err)
	}
}
