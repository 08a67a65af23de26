package zookeeper_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// lateContender is a contender whose server lags. By the time it is notified of the release that
// grants it the lock, another client has deleted its znode, and a third one holds the lock.
type lateContender struct {
	t        *testing.T
	follower *zkserver.Follower
	present  recipes.Grant // of the current holder
	done     chan struct{}
	grant    recipes.Grant // of the late contender; valid once done is closed
	err      error
}

const (
	lateTimeout = 10 * time.Second
	oneWay      = 30 * time.Millisecond // the delay to the lagging server, in each direction
)

// withLateContender calls then in a bubble, as soon as the event is on its way to the
// contender. The event is the release of the holder or, with sessionEnds, the end of its session.
func withLateContender(t *testing.T, w way, sessionEnds bool, then func(*lateContender)) {
	zktest.Bubble(t, func(t *testing.T) {
		ctx := t.Context()
		defer time.Sleep(10 * oneWay) // all bytes in flight have arrived by then
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		l := &lateContender{t: t, follower: srv.Follower(), done: make(chan struct{})}
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
			must.Do(t, w.GiveBack(ctx, had))
		}
		l.follower.Lag()
		operator := must.Get(next.Barrier(place.Znode))(t)
		must.Do(t, operator.Remove(ctx))
		must.Do(t, <-granted)
		l.follower.Deliver() // only the first transaction: the holder has left
		then(l)
		if err := l.present.Err(); err != nil {
			t.Errorf("the current holder: %v", err)
		}
		l.follower.Heal()
		<-l.done
		for _, s := range []recipes.Client{lags, holder, next} {
			s.Close(ctx)
		}
	})
}

// delayed serves connections as a distant server does.
func delayed(serve func(net.Conn)) func(net.Conn) {
	return func(near net.Conn) {
		far, server := net.Pipe()
		go serve(server)
		go carry(far, near)
		carry(near, far)
	}
}

// carry copies bytes, each with a delay of oneWay.
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
	for range pieces { // until the reading goroutine ends
	}
}

// The release granted the lock to the contender, and then another client deleted its znode. So
// the contender has lost a hold, and reports that when its server catches up. It could not
// write under that hold.
func TestAGrantThatWasTakenBackEnds(t *testing.T) {
	for _, name := range []string{"lock", "election", "semaphore", "shared lock for writing"} {
		for _, strategy := range recipes.Strategies() {
			w := wayTo(name, "").by(strategy)
			w.options.Permits = 1
			t.Run(name+"/"+string(strategy), func(t *testing.T) {
				for _, sessionEnds := range []bool{false, true} {
					withLateContender(t, w, sessionEnds, (*lateContender).losesItsGrant)
				}
			})
		}
	}
}

func (l *lateContender) losesItsGrant() {
	time.Sleep(10 * oneWay)
	l.follower.Heal()
	<-l.done
	if errors.Is(l.err, recipes.ErrRemoved) { // the contender has listed the wait queue after its server caught up
		return
	}
	if l.err != nil {
		l.t.Fatalf("entering ended with %v", l.err)
	}
	select {
	case <-l.grant.Done():
	case <-time.After(lateTimeout): // virtual
		l.t.Error("the loss is not reported")
	}
	if err := l.grant.Err(); !errors.Is(err, recipes.ErrRemoved) {
		l.t.Errorf("the grant ended with %v", err)
	}
	if err := l.grant.Write(l.t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
		l.t.Errorf("a write under the lost grant: %v", err)
	}
}
