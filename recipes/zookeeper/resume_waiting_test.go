package zookeeper_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// resumeWaiting resumes a waiter by its znode.
func (w way) resumeWaiting(ctx context.Context, s recipes.Client, path, znode string) (recipes.Grant, error) {
	e, err := w.Open(s, path, w.options)
	if err != nil {
		return nil, err
	}
	return e.ResumeWaiting(ctx, znode)
}

// start makes a contender of s join. It returns the contender's znode as soon as the znode exists.
func (w way) start(ctx context.Context, s recipes.Client, path string) (znode string, granted <-chan zktest.Outcome[recipes.Grant]) {
	place, granted := zktest.Waits(ctx, func(joined func(recipes.Place)) func(context.Context) (recipes.Grant, error) {
		return func(ctx context.Context) (recipes.Grant, error) { return w.enter(ctx, s, path, joined) }
	})
	return place.Znode, granted
}

func (w way) proceed(ctx context.Context, s recipes.Client, path, znode string) <-chan zktest.Outcome[recipes.Grant] {
	return zktest.Go(ctx, func(ctx context.Context) (recipes.Grant, error) { return w.resumeWaiting(ctx, s, path, znode) })
}

// wasResumed reports whether the session has resumed the znode.
func wasResumed(s recipes.Client, znode string) bool {
	return s.(interface{ WasResumed(string) bool }).WasResumed(znode)
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
	if again.Err != nil {
		t.Fatal(again.Err)
	}
	must.Do(t, again.Got.(recipes.Hold).Release(ctx))
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
	if e := <-granted; e.Err != nil || joins != 1 || looks != 0 {
		t.Errorf("it joined %d times, with %d checks of the path: %v", joins, looks, e.Err)
	}
}

// A resumed waiter that gives up leaves the wait queue.
func TestAWaiterThatWasMovedLeavesTheLine(t *testing.T) {
	eachWay(t, moved, func(t *testing.T, addr, path string, w way) {
		ctx, first, second, third := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr)
		_, granted := w.start(ctx, first, path)
		<-granted
		znode, _ := w.start(ctx, second, path)
		second = zktest.Move(t, addr, second)
		if e := <-w.proceed(ctx, third, path, znode); !errors.Is(e.Err, recipes.ErrRemoved) && !errors.Is(e.Err, recipes.ErrInvalid) {
			t.Errorf("another session at its place: %v", e.Err)
		}
		waiting, giveUp := context.WithCancel(ctx)
		left := w.proceed(waiting, second, path, znode)
		for !wasResumed(second, znode) {
			runtime.Gosched()
		}
		giveUp()
		if e := <-left; !errors.Is(e.Err, context.Canceled) {
			t.Errorf("given up: %+v", e)
		}
		_, last := w.start(ctx, third, path)
		must.Do(t, first.Close(ctx))
		if e := <-last; e.Err != nil {
			t.Error(e.Err)
		}
		if e := <-w.proceed(ctx, second, path, znode); !errors.Is(e.Err, recipes.ErrRemoved) {
			t.Errorf("after the waiter has left: %v", e.Err)
		}
	})
}
