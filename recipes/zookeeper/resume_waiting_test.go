package zookeeper_test

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// eachMoved runs test for each way whose waiters can be resumed.
func eachMoved(t *testing.T, test func(t *testing.T, addr, path string, w way)) {
	for server, addr := range map[string]func(*testing.T) string{
		"embedded": func(t *testing.T) string { return zktest.Embedded(t).Addr() },
		"real":     func(t *testing.T) string { return ensembletest.Shared(t).Addrs()[0] },
	} {
		t.Run(server, func(t *testing.T) {
			at := addr(t)
			for _, w := range ways(moved) {
				t.Run(w.name, func(t *testing.T) { test(t, at, "/"+rand.Text(), w) })
			}
		})
	}
}

type turnOf struct {
	grant recipes.Grant
	err   error
}

// resumeWaiting resumes a waiter by its znode.
func (w way) resumeWaiting(ctx context.Context, s recipes.Client, path, znode string) (recipes.Grant, error) {
	e, err := w.open(s, path, w.options)
	if err != nil {
		return nil, err
	}
	return e.resumeWaiting(ctx, znode)
}

// start has s contend. It returns the contender's znode as soon as the znode exists.
func (w way) start(ctx context.Context, s recipes.Client, path string) (znode string, granted <-chan turnOf) {
	joined, done := make(chan recipes.Place, 1), make(chan turnOf, 1)
	go func() {
		g, err := w.enter(ctx, s, path, func(p recipes.Place) { joined <- p })
		done <- turnOf{g, err}
	}()
	return (<-joined).Znode, done
}

func (w way) proceed(ctx context.Context, s recipes.Client, path, znode string) <-chan turnOf {
	done := make(chan turnOf, 1)
	go func() {
		g, err := w.resumeWaiting(ctx, s, path, znode)
		done <- turnOf{g, err}
	}()
	return done
}

// Three contend. The session of the second one is moved, and its contender keeps its place.
func TestAWaiterKeepsItsPlaceInLine(t *testing.T) {
	eachMoved(t, func(t *testing.T, addr, path string, w way) {
		ctx, first, second, third := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr)
		_, granted := w.start(ctx, first, path)
		if e := <-granted; e.err != nil {
			t.Fatal(e.err)
		}
		znode, _ := w.start(ctx, second, path)
		_, last := w.start(ctx, third, path)

		second = zktest.Move(t, addr, second)
		next := w.proceed(ctx, second, path, znode)
		for !wasResumed(second, znode) {
			runtime.Gosched()
		}
		if _, err := w.resumeWaiting(ctx, second, path, znode); !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("a second one at the same place: %v", err)
		}
		must.Do(t, second.(zktest.Movable).DropRest(ctx))
		must.Do(t, first.Close(ctx))
		var won turnOf
		select {
		case won = <-next:
		case e := <-last:
			t.Fatalf("the third was granted first: %v", e)
		}
		if won.err != nil {
			t.Fatal(won.err)
		}
		zktest.GuardedWrite(t, won.grant, path+"-written")
		must.Do(t, second.Close(ctx))
		if e := <-last; e.err != nil || e.grant.Token() <= won.grant.Token() {
			t.Errorf("the third: %+v after token %d", e, won.grant.Token())
		}
	})
}

// wasResumed reports whether the session has resumed the znode.
func wasResumed(s recipes.Client, znode string) bool {
	return s.(interface{ WasResumed(string) bool }).WasResumed(znode)
}

// A contender may be granted just before its process ends, so that its host gets no answer. The
// host resumes it as a waiter, and it returns the same grant.
func TestAWaiterWhoseTurnHasComeIsGranted(t *testing.T) {
	eachMoved(t, func(t *testing.T, addr, path string, w way) {
		ctx, first, second := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr)
		_, granted := w.start(ctx, first, path)
		<-granted
		znode, turn := w.start(ctx, second, path)
		must.Do(t, first.Close(ctx))
		had := <-turn
		if had.err != nil {
			t.Fatal(had.err)
		}
		second = zktest.Move(t, addr, second)
		again := <-w.proceed(ctx, second, path, znode)
		if again.err != nil || again.grant.Token() != had.grant.Token() || again.grant.Znode() != had.grant.Znode() {
			t.Fatalf("resumed %+v; want %s with token %d", again, had.grant.Znode(), had.grant.Token())
		}
		must.Do(t, second.(zktest.Movable).DropRest(ctx))
		zktest.GuardedWrite(t, again.grant, path+"-written")
	})
}

// A session that has resumed a waiter treats the path as busy. So its next contender does not
// check how long the wait queue is.
func TestALineWhereAWaiterWasMovedIsBusy(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx, first, second := zktest.Bounded(t), zktest.OpenAt(t, srv.Addr()), zktest.OpenAt(t, srv.Addr())
	w := wayTo("lock", "").by(recipes.Handoff)
	_, granted := w.start(ctx, first, "/line")
	<-granted
	znode, turn := w.start(ctx, second, "/line")
	must.Do(t, first.Close(ctx))
	<-turn
	second = zktest.Move(t, srv.Addr(), second)
	again := <-w.proceed(ctx, second, "/line", znode)
	if again.err != nil {
		t.Fatal(again.err)
	}
	must.Do(t, again.grant.(recipes.Hold).Release(ctx))
	joins, looks := 0, 0
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op == zkserver.OpCreate2 {
			joins++
		} else if joins == 1 && r.Op == zkserver.OpExists && looks == 0 {
			looks = 1
		}
		return zkserver.Fault{}
	})
	_, granted = w.start(ctx, second, "/line")
	if e := <-granted; e.err != nil || joins != 1 || looks != 0 {
		t.Errorf("it joined %d times, with %d checks of the path: %v", joins, looks, e.err)
	}
}

// A resumed waiter that gives up leaves the wait queue.
func TestAWaiterThatWasMovedLeavesTheLine(t *testing.T) {
	eachMoved(t, func(t *testing.T, addr, path string, w way) {
		ctx, first, second, third := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr)
		_, granted := w.start(ctx, first, path)
		<-granted
		znode, _ := w.start(ctx, second, path)
		second = zktest.Move(t, addr, second)
		if e := <-w.proceed(ctx, third, path, znode); !errors.Is(e.err, recipes.ErrRemoved) && !errors.Is(e.err, recipes.ErrInvalid) {
			t.Errorf("another session at its place: %v", e.err)
		}
		waiting, giveUp := context.WithCancel(ctx)
		left := w.proceed(waiting, second, path, znode)
		for !wasResumed(second, znode) {
			runtime.Gosched()
		}
		giveUp()
		if e := <-left; !errors.Is(e.err, context.Canceled) {
			t.Errorf("given up: %+v", e)
		}
		_, last := w.start(ctx, third, path)
		must.Do(t, first.Close(ctx))
		if e := <-last; e.err != nil {
			t.Error(e.err)
		}
		if e := <-w.proceed(ctx, second, path, znode); !errors.Is(e.err, recipes.ErrRemoved) {
			t.Errorf("after the waiter has left: %v", e.err)
		}
	})
}

// A resumed waiter may be granted before DropRest. A priority lock has then created another
// znode for the grant, which DropRest keeps.
func TestGrantsSinceTheResumeAreNotDropped(t *testing.T) {
	eachMoved(t, func(t *testing.T, addr, path string, w way) {
		ctx, first, second := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr)
		_, granted := w.start(ctx, first, path)
		if e := <-granted; e.err != nil {
			t.Fatal(e.err)
		}
		znode, _ := w.start(ctx, second, path)
		second = zktest.Move(t, addr, second)
		next := w.proceed(ctx, second, path, znode)
		for !wasResumed(second, znode) {
			runtime.Gosched()
		}
		must.Do(t, first.Close(ctx))
		won := <-next
		if won.err != nil {
			t.Fatal(won.err)
		}
		leader, leads := won.grant.(recipes.Leadership)
		if leads {
			must.Do(t, leader.Acknowledge(ctx, nil))
		}
		must.Do(t, second.(zktest.Movable).DropRest(ctx))
		zktest.GuardedWrite(t, won.grant, path+"-written")
		if leads {
			e := must.Get(second.Election(path, recipes.ElectionConfig{}))(t)
			if l := must.Get(e.Leader(ctx))(t); !l.Acknowledged {
				t.Error("the acknowledgement is gone")
			}
		}
	})
}

// A resume that fails at any of its requests has resumed nothing, and can be repeated.
func TestAResumeThatFailsCanBeTriedAgain(t *testing.T) {
	for failing := range 4 {
		srv := zktest.Embedded(t)
		ctx, first := zktest.Bounded(t), zktest.OpenAt(t, srv.Addr())
		l := must.Get(first.SharedLock("/shared", recipes.SharedLockConfig{}))(t)
		h := must.Get(l.AcquireWrite(ctx))(t)
		second := zktest.Move(t, srv.Addr(), first)
		l = must.Get(second.SharedLock("/shared", recipes.SharedLockConfig{}))(t)
		once, cancel := context.WithCancel(ctx)
		reads := 0
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op != zkserver.OpGetData && r.Op != zkserver.OpGetChildren2 {
				return zkserver.Fault{}
			}
			if reads++; reads != failing+1 {
				return zkserver.Fault{}
			}
			cancel()
			return zkserver.Fault{CloseBefore: true}
		})
		taken, err := l.(zktest.Taker[recipes.SharedHold]).Resume(once, h.Znode(), h.Token())
		cancel()
		if err != nil {
			taken, err = l.(zktest.Taker[recipes.SharedHold]).Resume(ctx, h.Znode(), h.Token())
		}
		if err != nil {
			t.Fatalf("failing in read %d: %v", failing, err)
		}
		must.Report(t, taken.Release(ctx))
		_ = second.Close(ctx)
	}
}
