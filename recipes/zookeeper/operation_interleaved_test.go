package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// What happens between a look and the transaction that relies on it is in this
// file. Each test names the check whose loss it would notice.

// between has do run, once, when the server is about to execute the first request
// of the session that matches. Other sessions go on while do runs. It returns a
// function that reports whether that has happened.
func between(srv *zkserver.Server, s recipes.Session, matches func(zkserver.Request) bool, do func()) (met func() bool) {
	done := make(chan struct{})
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID == s.ID() && matches(r) {
			select {
			case <-done:
			default:
				close(done) // what do sends through s, if anything, comes behind this request
				do()
			}
		}
		return zkserver.Fault{}
	})
	return func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

func is(op zkserver.Op) func(zkserver.Request) bool {
	return func(r zkserver.Request) bool { return r.Op == op }
}

// All have voted for a commit, and a site dies before the decision is written. The
// decision checks the votes that it stands on.
func TestACommitStandsOnVotesThatAreThere(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	coordinator, living, dying := open(t, srv), open(t, srv), open(t, srv)
	tx := transactionOf(t, coordinator, recipes.OwnNodes)
	if err := tx.Begin(ctx, nil, "lives", "dies"); err != nil {
		t.Fatal(err)
	}
	for s, name := range map[recipes.Client]string{living: "lives", dying: "dies"} {
		site := must.Get(transactionOf(t, s, recipes.OwnNodes).Join(ctx, name))(t)
		if err := site.Vote(ctx, recipes.VoteCommit); err != nil {
			t.Fatal(err)
		}
	}
	met := between(srv, coordinator, func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti }, func() {
		srv.ExpireSession(dying.ID())
	})
	d := must.Get(tx.Coordinate(ctx))(t)
	if !met() {
		t.Fatal("the case was not met")
	}
	if d.Commit {
		t.Errorf("decided %+v, and site dies was dead", d)
	}
}

// A member counts another one that dies before both are let in. Who lets them in
// checks that each of them is there.
func TestNobodyEntersWithAMemberThatHasDied(t *testing.T) {
	onVirtualTime(t, func(_ context.Context, t *testing.T, srv *zkserver.Server, dying recipes.Client) {
		ctx := bounded(t)
		staying, late := openVirtual(t, srv), openVirtual(t, srv)
		go doubleBarrierAt(t, dying, "/pair", 2).Enter(ctx, nil)
		atRest(t, srv, "/pair", 1)
		met := between(srv, staying, is(zkserver.OpMulti), func() { srv.ExpireSession(dying.ID()) })
		in := make(chan recipes.Passage, 1)
		go func() { in <- must.Get(doubleBarrierAt(t, staying, "/pair", 2).Enter(ctx, nil))(t) }()
		// It looks again, finds itself alone, and waits: nothing else is left to do.
		atRest(t, srv, "/pair", 1)
		if !met() {
			t.Fatal("the case was not met")
		}
		select {
		case <-in:
			t.Error("a member has entered alone")
		default:
			must.Get(doubleBarrierAt(t, late, "/pair", 2).Enter(ctx, nil))(t)
			<-in
		}
	})
}

// ready was read, and then it is deleted and made again, with the same version,
// for members who have not seen it yet. Who would replace it reads it again.
func TestReadyIsNotTakenForAnEarlierOne(t *testing.T) {
	onVirtualTime(t, func(_ context.Context, t *testing.T, srv *zkserver.Server, _ recipes.Client) {
		ctx := bounded(t)
		enter := func(s recipes.Client) <-chan recipes.Passage {
			in := make(chan recipes.Passage, 1)
			go func() {
				p, err := doubleBarrierAt(t, s, "/pair", 2).Enter(ctx, nil)
				if err == nil {
					in <- p
				}
				close(in)
			}()
			return in
		}
		former := []recipes.Client{openVirtual(t, srv), openVirtual(t, srv)}
		passages := entered(t, ctx, srv, "/pair", former)
		dying, staying, late := openVirtual(t, srv), openVirtual(t, srv), openVirtual(t, srv)
		enter(dying)
		atRest(t, srv, "/pair", 4) // two members inside, ready, and the one that waits
		stays := enter(staying)
		atRest(t, srv, "/pair", 5)

		// late has read the ready of the former members, and is about to list. Before
		// that they leave, dying and staying are let in, and dying dies.
		read, waits := false, make(chan struct{})
		var inside recipes.Passage
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			switch {
			case r.SessionID != late.ID():
			case r.Op == zkserver.OpGetData && r.Path == "/pair/ready":
				read = true
			case r.Op == zkserver.OpGetChildren2 || r.Op == zkserver.OpGetChildren:
				if !read || inside != nil {
					break
				}
				left := make(chan error)
				for _, p := range passages {
					go func() { left <- p.Leave(ctx) }()
				}
				for range passages {
					if err := <-left; err != nil {
						t.Error(err)
					}
				}
				inside = <-stays
				srv.ExpireSession(dying.ID())
			case inside != nil && r.Op == zkserver.OpGetData && r.Path == inside.Znode():
				close(waits)
			}
			return zkserver.Fault{}
		})
		joins := enter(late)
		select {
		case <-joins:
			t.Fatal("a member has entered with one that had entered before, with another")
		case <-waits:
		case <-ctx.Done():
			t.Fatal("the case was not met")
		}
		srv.SetFault(nil)
		if err := inside.Leave(ctx); err != nil {
			t.Error(err)
		}
		last := enter(openVirtual(t, srv))
		if <-joins == nil || <-last == nil {
			t.Error("the next two have not entered")
		}
	})
}

// The reply to a hand-over is lost, and the name is given again before the znode
// is looked at. The znode's czxid tells that it is another's.
func TestAHandoffInDoubtLeavesTheNextOfItsNameAlone(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	former, next, operator := open(t, srv), open(t, srv), open(t, srv)
	acquire := func(s recipes.Client) recipes.Hold {
		l := must.Get(s.Lock("/names", recipes.LockConfig{Strategy: recipes.Handoff}))(t)
		return must.Get(l.Acquire(ctx))(t)
	}
	stale := acquire(former)
	var hold recipes.Hold
	lost, multis := false, 0
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		switch {
		case r.SessionID != former.ID():
		case r.Op == zkserver.OpMulti && strings.HasPrefix(r.Path, "/names/"):
			if multis++; !lost {
				lost = true
				return zkserver.Fault{DropReply: true}
			}
		case lost && hold == nil && r.Op == zkserver.OpExists:
			if err := must.Get(operator.Barrier("/names"))(t).Remove(ctx); err != nil {
				t.Error(err)
			}
			hold = acquire(next)
		}
		return zkserver.Fault{}
	})
	if err := stale.Release(context.WithoutCancel(ctx)); err != nil {
		t.Errorf("a release that has happened: %v", err)
	}
	if hold == nil || hold.Znode() != stale.Znode() {
		t.Fatal("the case was not met")
	}
	if multis != 1 {
		t.Errorf("the hand-over was sent %d times", multis)
	}
	if err := hold.Write(ctx); err != nil {
		t.Errorf("the next hold: %v", err)
	}
}

// A waiter's place is deleted, and then the holder releases. The waiter learns of
// both together with the answer that its watches are set. The deletion came first,
// so the release was for somebody else.
func TestAWaiterThatWasDeletedBeforeTheReleaseIsNotNext(t *testing.T) {
	srv := embedded(t)
	holder, waiter, operator := open(t, srv), open(t, srv), open(t, srv)
	for i := range 200 { // which of two events a select takes is random
		ctx := bounded(t)
		path := fmt.Sprintf("/burst-%d", i)
		lock := func(s recipes.Client) recipes.Lock {
			return must.Get(s.Lock(path, recipes.LockConfig{Strategy: recipes.Handoff}))(t)
		}
		hold := must.Get(lock(holder).Acquire(ctx))(t)
		armed, burst := make(chan struct{}), make(chan struct{})
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == waiter.ID() && r.Op == zkserver.OpGetData && r.Path == hold.Znode() {
				close(armed)
				return zkserver.Fault{HoldReply: burst}
			}
			return zkserver.Fault{}
		})
		ended := make(chan error, 1)
		go func() {
			_, err := lock(waiter).Acquire(ctx)
			ended <- err
		}()
		<-armed
		srv.SetFault(nil)
		contenders := must.Get(lock(operator).Contenders(ctx))(t)
		if len(contenders) != 2 {
			t.Fatalf("%d contenders", len(contenders))
		}
		if err := must.Get(operator.Barrier(contenders[1].Znode))(t).Remove(ctx); err != nil {
			t.Fatal(err)
		}
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
		close(burst)
		if err := <-ended; !errors.Is(err, recipes.ErrRemoved) {
			t.Fatalf("a waiter whose place was deleted before the release: %v", err)
		}
	}
}
