package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// DropRest deletes what was not resumed. The acknowledgement is resumed with its leadership.
func TestAnAcknowledgementIsResumedWithItsLeadership(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	first := openAt(t, srv.Addr())
	l := must[recipes.Leadership](t)(must[recipes.Election](t)(first.Election("/e", recipes.ElectionConfig{})).Campaign(ctx, nil))
	if err := l.Acknowledge(ctx, []byte("ready")); err != nil {
		t.Fatal(err)
	}
	second := move(t, srv.Addr(), first)
	e := must[recipes.Election](t)(second.Election("/e", recipes.ElectionConfig{}))
	l = must[recipes.Leadership](t)(e.(taker[recipes.Leadership]).Resume(ctx, l.Znode(), l.Token()))
	if err := second.(movable).DropRest(ctx); err != nil {
		t.Fatal(err)
	}
	leader := must[recipes.Leader](t)(e.Leader(ctx))
	if !leader.Acknowledged || string(leader.Acknowledgement) != "ready" {
		t.Errorf("after DropRest the leader is %+v", leader)
	}
}

// The caller has to know which element may be lost.
func TestATakeOfUnknownOutcomeNamesItsElement(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := openAt(t, srv.Addr())
	q := queueOf(t, s, "/q", recipes.QueueConfig{})
	id := must[recipes.ElementID](t)(q.Put(ctx, []byte("x")))
	met := between(srv, s, is(zkserver.OpMulti), func() { srv.ExpireSession(s.ID()) })
	_, err := q.Take(ctx)
	if !met() || !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Fatalf("the take has ended with %v", err)
	}
	if want := string(id) + " may have been taken"; !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %q; want one with %q", err, want)
	}
}

// The last member of a round deletes its znode and ready in one transaction. If ZooKeeper
// refuses the first of them, Leave says so.
func TestALastMemberThatCannotBeDeletedIsReported(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s, other := openAt(t, srv.Addr()), openAt(t, srv.Addr())
	p := must[recipes.Passage](t)(doubleBarrierAt(t, s, "/b", 1).Enter(ctx, nil))
	_ = other
	leaving, cancel := context.WithCancel(ctx)
	defer cancel()
	err := p.Leave(leaving)
	t.Log(err)
}
