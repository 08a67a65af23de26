package zookeeper_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// tooLate is a contender whose server lags. It learns of the release that was meant for it
// when another client has deleted its znode, and a third one holds.
type tooLate struct {
	t        *testing.T
	follower *zkserver.Follower
	present  recipes.Grant // who holds
	done     chan struct{}
	grant    recipes.Grant // of the late one, when done
	err      error
}

const (
	lateTimeout = 10 * time.Second
	oneWay      = 30 * time.Millisecond // to the server that lags
)

// tellLate runs a test with such a contender, in a bubble, as soon as the event has reached
// it. It does so once after a release, and once after the end of the holder's session.
func tellLate(t *testing.T, w way, then func(*tooLate)) {
	for _, ends := range []bool{false, true} {
		tellLateOf(t, w, ends, then)
	}
}

func tellLateOf(t *testing.T, w way, sessionEnds bool, then func(*tooLate)) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		defer time.Sleep(10 * oneWay) // until what is on its way has arrived
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		l := &tooLate{t: t, follower: srv.Follower(), done: make(chan struct{})}
		lags := zktest.LinkTo(delayed(l.follower.ServeConn)).Open(t, lateTimeout)
		holder, next := zktest.LinkTo(srv.ServeConn).Open(t, lateTimeout), zktest.LinkTo(srv.ServeConn).Open(t, lateTimeout)
		had := must.Get(w.enter(ctx, holder, "/line", nil))(t)
		joined := make(chan recipes.Place, 2)
		join := func(p recipes.Place) { joined <- p }
		go func() {
			defer close(l.done)
			l.grant, l.err = w.enter(ctx, lags, "/line", join)
		}()
		place := <-joined
		granted := make(chan error, 1)
		go func() {
			var err error
			l.present, err = w.enter(ctx, next, "/line", join)
			granted <- err
		}()
		<-joined
		time.Sleep(4 * oneWay) // all watches are set
		l.follower.CutOff()
		if sessionEnds {
			must.Do(t, holder.Close(ctx))
		} else {
			must.Do(t, w.giveBack(ctx, had))
		}
		l.follower.Lag()
		operator := must.Get(next.Barrier(place.Znode))(t)
		must.Do(t, operator.Remove(ctx))
		must.Do(t, <-granted)
		l.follower.Deliver() // of all that has happened, the first: that the holder has left
		then(l)
		if err := l.present.Err(); err != nil {
			t.Errorf("who holds: %v", err)
		}
		l.follower.Heal()
		<-l.done
		for _, s := range []recipes.Client{lags, holder, next} {
			s.Close(ctx)
		}
	})
}

// delayed leads to a server that is far away.
func delayed(serve func(net.Conn)) func(net.Conn) {
	return func(near net.Conn) {
		far, server := net.Pipe()
		go serve(server)
		go carry(far, near)
		carry(near, far)
	}
}

// carry writes what it reads, each piece oneWay later.
func carry(to, from net.Conn) {
	type piece struct {
		due   time.Time
		bytes []byte
	}
	pieces := make(chan piece, 1000)
	go func() {
		defer close(pieces)
		for {
			b := make([]byte, 64<<10)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			pieces <- piece{time.Now().Add(oneWay), b[:n]}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	to.Close()
	from.Close()
	for range pieces { // until its reader has seen the end
	}
}

// The release was for the contender. That its znode was deleted afterwards is the loss of a
// hold, which it reports when its server catches up. No write under it was done.
func TestAGrantThatWasTakenBackEnds(t *testing.T) {
	for _, name := range []string{"lock", "election", "semaphore", "shared lock for writing"} {
		for _, strategy := range recipes.Strategies() {
			w := wayTo(name, "").by(strategy)
			w.options.permits = 1
			t.Run(name+"/"+string(strategy), func(t *testing.T) { aGrantThatWasTakenBackEnds(t, w) })
		}
	}
}

func aGrantThatWasTakenBackEnds(t *testing.T, w way) {
	tellLate(t, w, func(l *tooLate) {
		time.Sleep(10 * oneWay)
		l.follower.Heal()
		<-l.done
		if errors.Is(l.err, recipes.ErrRemoved) { // it has listed the line of a server that knew
			return
		}
		if l.err != nil {
			t.Fatalf("entering ended with %v", l.err)
		}
		select {
		case <-l.grant.Done():
		case <-time.After(lateTimeout): // virtual
			t.Error("the loss is not reported")
		}
		if err := l.grant.Err(); !errors.Is(err, recipes.ErrRemoved) {
			t.Errorf("it ended with %v", err)
		}
		if err := l.grant.Write(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("a write under it: %v", err)
		}
	})
}
