package zookeeper_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A holder reads what the previous holder has written. When its connection ends, the event of the
// release may be the only thing that the session has received since the write. It may then move to
// a server that has not applied the write. Before ZooKeeper 3.9 an event does not name its
// transaction.
func TestAHolderReadsWhatThePreviousHolderWrote(t *testing.T) {
	for _, like := range []zkserver.Release{zkserver.Release34, zkserver.Release38, zkserver.Release39} {
		for _, strategy := range recipes.Strategies() {
			t.Run(fmt.Sprintf("%v by %s", like, strategy), func(t *testing.T) {
				zktest.Bubble(t, func(t *testing.T) { holderReads(t, like, strategy) })
			})
		}
	}
}

func holderReads(t *testing.T, like zkserver.Release, strategy recipes.Strategy) {
	ctx := t.Context()
	srv := zkserver.New(zkserver.Config{Like: like})
	defer srv.Close()
	late := srv.Follower()
	link := zktest.LinkTo(srv.ServeConn)
	holder, waiter := zktest.LinkTo(srv.ServeConn).Open(t, lateTimeout), link.Open(t, lateTimeout)
	defer holder.Close(ctx)
	w := wayTo("lock", "").by(strategy)
	had := must.Get(w.enter(ctx, holder, "/line", nil))(t)
	set := func(value string) {
		must.Get(zktest.ConfigAt(t, holder, "/data").Set(ctx, "a", []byte(value), recipes.AnyRevision))(t)
	}
	set("old")
	_, granted := zktest.Waits(ctx, func(joined func(recipes.Place)) func(context.Context) (recipes.Grant, error) {
		return func(ctx context.Context) (recipes.Grant, error) { return w.enter(ctx, waiter, "/line", joined) }
	})
	synctest.Wait()
	late.Late()
	set("new")
	must.Do(t, w.GiveBack(ctx, had))
	got := <-granted
	must.Do(t, got.Err)
	link.Cut() // nothing was sent since the event
	link.Lead(late.ServeConn)
	reading := zktest.Go(ctx, func(ctx context.Context) (string, error) {
		entry, err := zktest.ConfigAt(t, waiter, "/data").Get(ctx, "a")
		return string(entry.Value), err
	})
	time.Sleep(lateTimeout / 5)
	late.Heal()
	if read := <-reading; read.Err != nil || read.Got != "new" {
		t.Errorf("it reads %q, %v", read.Got, read.Err)
	}
	if err := got.Got.Err(); err != nil {
		t.Errorf("the grant has ended: %v", err)
	}
	waiter.Close(ctx)
}
