package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// After DropRest has failed, it can be repeated. It then deletes the rest, and keeps the
// resumed hold.
func TestDropRestIsRepeated(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
	at := func(path string) recipes.Lock {
		return must.Get(s.Lock(path, recipes.LockConfig{}))(t)
	}
	had := must.Get(at("/kept").Acquire(ctx))(t)
	must.Get(at("/dropped").Acquire(ctx))(t)
	if err := s.(zktest.Movable).DropRest(ctx); !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("of a session that was not resumed: %v", err)
	}
	for _, fails := range []zkserver.Op{zkserver.OpGetEphemerals, zkserver.OpDelete} {
		s = zktest.Move(t, srv.Addr(), s)
		taken := must.Get(at("/kept").(zktest.Taker[recipes.Hold]).Resume(ctx, had.Znode(), had.Token()))(t)
		trying, giveUp := context.WithCancel(ctx)
		hold := make(chan struct{})
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op != fails {
				return zkserver.Fault{}
			}
			giveUp()
			return zkserver.Fault{Hold: hold}
		})
		if err := s.(zktest.Movable).DropRest(trying); !errors.Is(err, context.Canceled) {
			t.Errorf("%v fails: %v", fails, err)
		}
		srv.SetFault(nil)
		close(hold)
		must.Do(t, s.(zktest.Movable).DropRest(ctx))
		if err := taken.Write(ctx); err != nil {
			t.Fatalf("the resumed hold: %v", err)
		}
		if line := must.Get(at("/dropped").Contenders(ctx))(t); len(line) != 0 {
			t.Errorf("the wait queue of the other lock: %+v", line)
		}
		must.Get(at("/dropped").Acquire(ctx))(t)
	}
}

// If another client has written to the element since the claim, its delivery is not resumed.
func TestADeliveryThatWasChangedIsNotResumed(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx, s, other := zktest.Bounded(t), zktest.Open(t, srv), zktest.Open(t, srv)
	q := must.Get(s.Queue("/q", recipes.QueueConfig{}))(t)
	id := must.Get(q.Put(ctx, nil))(t)
	had := must.Get(q.Receive(ctx))(t)
	lock := must.Get(must.Get(other.Lock("/l", recipes.LockConfig{}))(t).Acquire(ctx))(t)
	must.Do(t, lock.Write(ctx, recipes.Set("/q/"+string(id), nil, recipes.AnyVersion)))
	s = zktest.Move(t, srv.Addr(), s)
	q = must.Get(s.Queue("/q", recipes.QueueConfig{}))(t)
	if _, err := q.(zktest.Taker[recipes.Delivery]).Resume(ctx, had.Znode(), had.Token()); !errors.Is(err, recipes.ErrNotHeld) {
		t.Errorf("resumed: %v", err)
	}
}

// eachWay runs test for each way of a technique, on the in-process server and on a real one.
func eachWay(t *testing.T, in technique, test func(t *testing.T, addr, path string, w way)) {
	zktest.Everywhere(t, func(t *testing.T, addr, path string) {
		for i, w := range ways(in) {
			t.Run(w.Name, func(t *testing.T) { test(t, addr, fmt.Sprintf("%s-%d", path, i), w) })
		}
	})
}

// A znode that the session does not hold is not resumed, and is kept.
func TestOnlyHoldsAreResumed(t *testing.T) {
	eachWay(t, held, func(t *testing.T, addr, path string, w way) {
		ctx, other := zktest.Bounded(t), zktest.OpenAt(t, addr)
		s := zktest.OpenAt(t, addr)
		held := must.Get(w.at(t, s, path).Get(ctx))(t)
		// Another session's.
		theirs := must.Get(w.at(t, other, path+"-theirs").Get(ctx))(t)

		s = zktest.Move(t, addr, s)
		resume, takeTheirs := w.at(t, s, path).Resume, w.at(t, s, path+"-theirs").Resume
		refused := func(what string, want error, resume func(context.Context, string, recipes.Token) (recipes.Grant, error), znode string, token recipes.Token) {
			t.Helper()
			if g, err := resume(ctx, znode, token); !errors.Is(err, want) {
				t.Errorf("%s: %v, %v", what, g, err)
			}
		}
		refused("another token", recipes.ErrRemoved, resume, held.Znode(), held.Token()+1)
		refused("another session's", recipes.ErrRemoved, takeTheirs, theirs.Znode(), theirs.Token())
		refused("another path's", recipes.ErrInvalid, takeTheirs, held.Znode(), held.Token())
		refused("the path", recipes.ErrInvalid, resume, path, held.Token())
		refused("nothing", recipes.ErrInvalid, resume, "", 0)
		if g, err := resume(ctx, path+"/other", held.Token()); !errors.Is(err, recipes.ErrInvalid) && !errors.Is(err, recipes.ErrRemoved) {
			t.Errorf("a name that is no contender's: %v, %v", g, err)
		}
		must.Report(t, theirs.Err())
		if err := theirs.Write(ctx); err != nil {
			t.Errorf("theirs: %v", err)
		}

		if taken, err := resume(ctx, held.Znode(), held.Token()); err != nil { // the failed calls have changed nothing
			t.Error(err)
		} else {
			refused("what was taken up before", recipes.ErrInvalid, resume, held.Znode(), held.Token())
			must.Report(t, w.GiveBack(ctx, taken))
		}
		refused("what is gone", recipes.ErrRemoved, resume, held.Znode(), held.Token())
	})
}

// tokenOf returns the token of a grant that has the znode.
func tokenOf(t *testing.T, srv *zkserver.Server, znode string) recipes.Token {
	t.Helper()
	for _, n := range srv.Tree() {
		if n.Path == znode {
			return recipes.Token(n.Stat.Czxid)
		}
	}
	t.Fatalf("there is no %s", znode)
	return 0
}

// Resume checks the grant: a contender that still waits is not resumed as a holder.
func TestAWaiterIsNotResumedAsAHolder(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		t.Run(string(strategy), func(t *testing.T) {
			srv := zktest.Embedded(t)
			ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
			must.Get(must.Get(zktest.Open(t, srv).Lock("/lock", recipes.LockConfig{}))(t).Acquire(ctx))(t)
			w := wayTo("lock", "").by(strategy)
			znode, _ := w.start(ctx, s, "/lock")
			token := tokenOf(t, srv, znode)

			s = zktest.Move(t, srv.Addr(), s)
			if _, err := w.at(t, s, "/lock").Resume(ctx, znode, token); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("the waiter: %v", err)
			}
		})
	}
}

// A reader behind a downgraded writer was granted, and is resumed. A reader that still waits behind
// a writer is not resumed as a holder.
func TestAReaderBehindAWriterIsResumedIfItWasGranted(t *testing.T) {
	for _, downgraded := range []bool{true, false} {
		srv := zktest.Embedded(t)
		ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
		writer := must.Get(must.Get(zktest.Open(t, srv).SharedLock("/shared", recipes.SharedLockConfig{}))(t).AcquireWrite(ctx))(t)
		if downgraded {
			must.Do(t, writer.Downgrade(ctx))
		}
		w := wayTo("shared lock for reading", "")
		znode, granted := w.start(ctx, s, "/shared")
		if downgraded {
			must.Do(t, (<-granted).Err)
		}
		token := tokenOf(t, srv, znode)

		s = zktest.Move(t, srv.Addr(), s)
		_, err := w.at(t, s, "/shared").Resume(ctx, znode, token)
		if downgraded && err != nil || !downgraded && (!errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrRemoved)) {
			t.Errorf("the writer has downgraded: %v; the reader: %v", downgraded, err)
		}
	}
}

// A writer that has claimed a priority lock still waits for the readers that hold it. So the writer
// is not resumed as a holder.
func TestAWriterThatHasOnlyClaimedIsNotResumed(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
	reading := must.Get(zktest.Open(t, srv).PriorityLock("/p", recipes.PriorityLockConfig{}))(t)
	must.Get(reading.AcquireRead(ctx))(t)
	claimed := must.Get(s.(interface {
		CreateNamed(context.Context, string, []byte) (session.Stat, error)
	}).CreateNamed(ctx, "/p/writing-00-0000000009", nil))(t)

	s = zktest.Move(t, srv.Addr(), s)
	lock := must.Get(s.PriorityLock("/p", recipes.PriorityLockConfig{}))(t).(zktest.Taker[recipes.PriorityHold])
	if _, err := lock.Resume(ctx, "/p/writing-00-0000000009", recipes.Token(claimed.Czxid)); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrRemoved) {
		t.Errorf("the writer: %v", err)
	}
}

// Beside a resumed reader of a priority lock, other readers are granted. Behind a resumed
// reader or writer, writers wait.
func TestAPriorityLockIsResumedBesideOthers(t *testing.T) {
	for name, acquire := range map[string]func(recipes.PriorityLock, context.Context) (recipes.PriorityHold, error){
		"reading": recipes.PriorityLock.AcquireRead, "writing": recipes.PriorityLock.AcquireWrite,
	} {
		t.Run(name, func(t *testing.T) {
			srv := zktest.Embedded(t)
			ctx, s, other := zktest.Bounded(t), zktest.Open(t, srv), zktest.Open(t, srv)
			at := func(s recipes.Client) recipes.PriorityLock {
				return must.Get(s.PriorityLock("/p", recipes.PriorityLockConfig{}))(t)
			}
			had := must.Get(acquire(at(s), ctx))(t)
			if name == "reading" {
				must.Get(at(other).AcquireRead(ctx))(t)
			}
			wayTo("priority lock for writing", "").start(ctx, other, "/p")
			taken := must.Get(at(zktest.Move(t, srv.Addr(), s)).(zktest.Taker[recipes.PriorityHold]).Resume(ctx, had.Znode(), had.Token()))(t)
			must.Report(t, taken.Write(ctx))
		})
	}
}

// DropRest deletes what was not resumed. An acknowledgement is resumed with its leadership, and
// kept.
func TestAnAcknowledgementIsResumedWithItsLeadership(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	first := zktest.Open(t, srv)
	l := must.Get(must.Get(first.Election("/e", recipes.ElectionConfig{}))(t).Campaign(ctx, nil))(t)
	must.Do(t, l.Acknowledge(ctx, []byte("ready")))
	second := zktest.Move(t, srv.Addr(), first)
	e := must.Get(second.Election("/e", recipes.ElectionConfig{}))(t)
	must.Get(e.(zktest.Taker[recipes.Leadership]).Resume(ctx, l.Znode(), l.Token()))(t)
	must.Do(t, second.(zktest.Movable).DropRest(ctx))
	leader := must.Get(e.Leader(ctx))(t)
	if !leader.Acknowledged || string(leader.Acknowledgement) != "ready" {
		t.Errorf("after DropRest the leader is %+v", leader)
	}
}

// PITFALLS 61, for a resumed session. Its follower is cut off before anything is resumed, and
// still answers. The host relies on the contacts that the resumed session reports. So the
// session may report only contacts with the leader, even if it holds nothing yet.
func TestAResumedSessionReportsContactsThatTheLeaderKnows(t *testing.T) {
	const timeout = 4 * time.Second // the smallest: two ticks
	for phase := time.Duration(0); phase < timeout; phase += 130 * time.Millisecond {
		t.Run(phase.String(), func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
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
	zktest.Bubble(t, func(t *testing.T) {
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

// A session confirms a resumed hold like any other: ten times in a timeout, until it is released.
func TestAResumedHoldIsConfirmed(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		_, dialer := zktest.Piped(t)
		cfg := recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: 10 * time.Second}
		s := must.Get(dialer.Open(t.Context(), cfg))(t)
		held := must.Get(must.Get(s.Lock("/lock", recipes.LockConfig{}))(t).Acquire(t.Context()))(t)
		must.Do(t, s.(zktest.Movable).Detach(t.Context()))
		s = must.Get(dialer.Resume(t.Context(), cfg, s.(zktest.Movable).ResumeTicket(), time.Now()))(t)
		defer s.Close(context.Background())
		lock := must.Get(s.Lock("/lock", recipes.LockConfig{}))(t).(zktest.Taker[recipes.Hold])
		hold := must.Get(lock.Resume(t.Context(), held.Znode(), held.Token()))(t)
		must.Do(t, s.(zktest.Movable).DropRest(t.Context()))
		time.Sleep(cfg.SessionTimeout)
		for range 30 {
			time.Sleep(cfg.SessionTimeout / 7)
			if left := time.Until(hold.ValidUntil()); left < cfg.SessionTimeout*2/5 {
				t.Fatalf("valid for another %v: %v", left, hold.Err())
			}
		}
	})
}
