package zookeeper_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
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

// A resumed delivery has the same element and attempt. It can be acknowledged or returned.
func TestADeliveryIsResumed(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
	at := func(s recipes.Client) recipes.PriorityQueue {
		return must.Get(s.PriorityQueue("/q", recipes.QueueConfig{}))(t)
	}
	if _, err := at(s).Put(ctx, 7, []byte("data")); err != nil {
		t.Fatal(err)
	}
	must.Do(t, must.Get(at(s).Receive(ctx))(t).Return(ctx))
	had := must.Get(at(s).Receive(ctx))(t)
	s = zktest.Move(t, srv.Addr(), s)
	taken := must.Get(at(s).(zktest.Taker[recipes.Delivery]).Resume(ctx, had.Znode(), had.Token()))(t)
	if !reflect.DeepEqual(taken.Element(), had.Element()) || taken.Attempt() != 2 {
		t.Errorf("%+v, attempt %d; it was %+v", taken.Element(), taken.Attempt(), had.Element())
	}
	must.Do(t, s.(zktest.Movable).DropRest(ctx))
	must.Do(t, taken.Ack(ctx))
	for _, node := range srv.Tree() {
		if strings.HasSuffix(node.Path, "/"+string(had.Element().ID)) {
			t.Errorf("%s is still there", node.Path)
		}
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

// eachHeld runs test for each way whose grants can be resumed, on the in-process server and on a real one.
func eachHeld(t *testing.T, test func(t *testing.T, addr, path string, w way)) {
	on := func(server string, addr func(*testing.T) string) {
		t.Run(server, func(t *testing.T) {
			at := addr(t)
			for i, w := range ways(held) {
				t.Run(w.name, func(t *testing.T) {
					test(t, at, fmt.Sprintf("/%s-%d", rand.Text(), i), w)
				})
			}
		})
	}
	on("embedded", func(t *testing.T) string { return zktest.Embedded(t).Addr() })
	on("real", func(t *testing.T) string { return ensembletest.Shared(t).Addrs()[0] })
}

func TestHoldsAreResumed(t *testing.T) {
	eachHeld(t, func(t *testing.T, addr, path string, w way) {
		ctx, other := zktest.Bounded(t), zktest.OpenAt(t, addr)
		first := zktest.OpenAt(t, addr)
		held := must.Get(w.at(t, first, path).get(ctx))(t)
		zktest.GuardedWrite(t, held, path+"-before")

		second := zktest.Move(t, addr, first)
		if err := held.Err(); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("in the process that has detached the session, Err is %v", err)
		}
		taken := must.Get(w.at(t, second, path).resume(ctx, held.Znode(), held.Token()))(t)
		must.Do(t, second.(zktest.Movable).DropRest(ctx))
		if taken.Token() != held.Token() || taken.Znode() != held.Znode() || taken.Err() != nil {
			t.Errorf("resumed %s with token %d (%v); want %s with %d", taken.Znode(), taken.Token(), taken.Err(), held.Znode(), held.Token())
		}
		if try := w.rivals().at(t, other, path).try; try != nil {
			if g, err := try(ctx); err == nil {
				t.Errorf("another session was granted %s beside it", g.Znode())
			}
		}
		zktest.GuardedWrite(t, taken, path+"-after")
		select {
		case <-taken.Done():
			t.Errorf("lost: %v", taken.Err())
		default:
		}

		// The resumed hold has the identity of its session, so its release hands the lock off.
		waiting, granted := make(chan struct{}), make(chan error, 1)
		lock := w.name == "lock by handoff"
		if lock {
			line := must.Get(other.Lock(path, recipes.LockConfig{Joined: func(recipes.Place) { close(waiting) }}))(t)
			go func() { _, err := line.Acquire(ctx); granted <- err }()
			<-waiting
		}
		must.Do(t, w.giveBack(ctx, taken))
		if lock {
			must.Do(t, <-granted)
			if stats := must.Get(other.Stats(ctx))(t); stats.Handoffs != 1 {
				t.Errorf("%d handoffs: the waiter has listed the line", stats.Handoffs)
			}
		}
		must.Report(t, second.Close(ctx))
	})
}

// A znode that the session does not hold is not resumed, and is kept.
func TestOnlyHoldsAreResumed(t *testing.T) {
	eachHeld(t, func(t *testing.T, addr, path string, w way) {
		ctx, other := zktest.Bounded(t), zktest.OpenAt(t, addr)
		s := zktest.OpenAt(t, addr)
		held := must.Get(w.at(t, s, path).get(ctx))(t)
		// Another session's.
		theirs := must.Get(w.at(t, other, path+"-theirs").get(ctx))(t)

		s = zktest.Move(t, addr, s)
		resume, takeTheirs := w.at(t, s, path).resume, w.at(t, s, path+"-theirs").resume
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
		must.Report(t, theirs.Err())
		if err := theirs.Write(ctx); err != nil {
			t.Errorf("theirs: %v", err)
		}

		if taken, err := resume(ctx, held.Znode(), held.Token()); err != nil { // the failed calls have changed nothing
			t.Error(err)
		} else {
			refused("what was taken up before", recipes.ErrInvalid, resume, held.Znode(), held.Token())
			must.Report(t, w.giveBack(ctx, taken))
		}
		refused("what is gone", recipes.ErrRemoved, resume, held.Znode(), held.Token())
	})
}

// Resume checks the grant: a contender that still waits is not resumed as a holder.
func TestAWaiterIsNotResumedAsAHolder(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		t.Run(string(strategy), func(t *testing.T) {
			srv := zktest.Embedded(t)
			ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
			must.Get(must.Get(zktest.Open(t, srv).Lock("/lock", recipes.LockConfig{}))(t).Acquire(ctx))(t)
			joined := make(chan recipes.Place, 1)
			lock := must.Get(s.Lock("/lock", recipes.LockConfig{Strategy: strategy, Joined: func(p recipes.Place) { joined <- p }}))(t)
			go lock.Acquire(ctx)
			place := <-joined
			contenders := must.Get(lock.Contenders(ctx))(t)
			at := slices.IndexFunc(contenders, func(c recipes.Contender) bool { return c.Znode == place.Znode })

			s = zktest.Move(t, srv.Addr(), s)
			taker := must.Get(s.Lock("/lock", recipes.LockConfig{Strategy: strategy}))(t).(zktest.Taker[recipes.Hold])
			if _, err := taker.Resume(ctx, place.Znode, contenders[at].Token); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("the waiter: %v", err)
			}
		})
	}
}

// A reader behind a downgraded writer was granted, and is resumed. A reader that waits behind
// a writer is not.
func TestAReaderBehindAWriterIsResumedIfItWasGranted(t *testing.T) {
	for _, downgraded := range []bool{true, false} {
		srv := zktest.Embedded(t)
		ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
		lock := func(s recipes.Client, joined func(recipes.Place)) recipes.SharedLock {
			return must.Get(s.SharedLock("/shared", recipes.SharedLockConfig{Joined: joined}))(t)
		}
		writer := must.Get(lock(zktest.Open(t, srv), nil).AcquireWrite(ctx))(t)
		if downgraded {
			must.Do(t, writer.Downgrade(ctx))
		}
		joined, granted := make(chan recipes.Place, 1), make(chan error, 1)
		go func() {
			_, err := lock(s, func(p recipes.Place) { joined <- p }).AcquireRead(ctx)
			granted <- err
		}()
		place := <-joined
		if downgraded {
			must.Do(t, <-granted)
		}
		contenders := must.Get(lock(s, nil).Contenders(ctx))(t)
		at := slices.IndexFunc(contenders, func(c recipes.Contender) bool { return c.Znode == place.Znode })

		s = zktest.Move(t, srv.Addr(), s)
		_, err := lock(s, nil).(zktest.Taker[recipes.SharedHold]).Resume(ctx, place.Znode, contenders[at].Token)
		if downgraded && err != nil || !downgraded && (!errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrRemoved)) {
			t.Errorf("the writer has downgraded: %v; the reader: %v", downgraded, err)
		}
	}
}

// The callers of contenders that are not resumed have ended with their process. Such
// contenders would block the wait queue.
func TestTheRestIsDropped(t *testing.T) {
	everywhere := func(t *testing.T, addr string) {
		ctx, s, holder, dropped := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr), "/"+rand.Text()
		held := must.Get(must.Get(holder.Lock(dropped, recipes.LockConfig{}))(t).Acquire(ctx))(t)
		kept := must.Get(must.Get(s.Lock(dropped+"-kept", recipes.LockConfig{}))(t).Acquire(ctx))(t)
		zktest.GuardedWrite(t, kept, dropped+"-by-kept")
		joined := make(chan recipes.Place, 1)
		go must.Get(s.Lock(dropped, recipes.LockConfig{Joined: func(p recipes.Place) { joined <- p }}))(t).Acquire(ctx)
		<-joined

		s = zktest.Move(t, addr, s)
		lock := must.Get(s.Lock(dropped+"-kept", recipes.LockConfig{}))(t).(zktest.Taker[recipes.Hold])
		taken := must.Get(lock.Resume(ctx, kept.Znode(), kept.Token()))(t)
		must.Do(t, s.(zktest.Movable).DropRest(ctx))
		line := must.Get(must.Get(holder.Lock(dropped, recipes.LockConfig{}))(t).Contenders(ctx))(t)
		if len(line) != 1 || line[0].Znode != held.Znode() {
			t.Errorf("the wait queue is %+v", line)
		}
		if err := taken.Write(ctx); err != nil {
			t.Errorf("the resumed hold: %v", err)
		}
		must.Get(must.Get(s.Lock(dropped+"-new", recipes.LockConfig{}))(t).Acquire(ctx))(t)
	}
	t.Run("embedded", func(t *testing.T) { everywhere(t, zktest.Embedded(t).Addr()) })
	t.Run("real", func(t *testing.T) { everywhere(t, ensembletest.Shared(t).Addrs()[0]) })
}

// A writer that has claimed a priority lock still waits for the readers that hold it. So it is
// not resumed as a holder.
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
			at := func(s recipes.Client, joined func(recipes.Place)) recipes.PriorityLock {
				return must.Get(s.PriorityLock("/p", recipes.PriorityLockConfig{Joined: joined}))(t)
			}
			had := must.Get(acquire(at(s, nil), ctx))(t)
			if name == "reading" {
				must.Get(at(other, nil).AcquireRead(ctx))(t)
			}
			waiting, leave := context.WithCancel(ctx)
			defer leave()
			waits := make(chan struct{})
			go at(other, func(recipes.Place) { close(waits) }).AcquireWrite(waiting)
			<-waits
			taken := must.Get(at(zktest.Move(t, srv.Addr(), s), nil).(zktest.Taker[recipes.PriorityHold]).Resume(ctx, had.Znode(), had.Token()))(t)
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
