package barrier_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// member has the methods of a double barrier that resume its members.
type member interface {
	recipes.DoubleBarrier
	EnterAnnounced(context.Context, uuid.UUID, []byte, func(recipes.Place)) (recipes.Passage, error)
	Resume(context.Context, string, recipes.Token) (recipes.Passage, error)
	ResumeLeaving(context.Context, string, recipes.Token, []string) (recipes.Passage, error)
	ResumeWaiting(context.Context, string, func(recipes.Place)) (recipes.Passage, error)
}

func memberAt(t *testing.T, s recipes.Recipes, path string, size int) member {
	t.Helper()
	return doubleBarrierAt(t, s, path, size).(member)
}

func unannounced(recipes.Place) {}

// waitIn calls Enter in a goroutine, and returns the member's znode when it waits.
func waitIn(ctx context.Context, b member) (znode string, entered <-chan zktest.Outcome[recipes.Passage]) {
	place, entered := zktest.Waits(ctx, func(joined func(recipes.Place)) func(context.Context) (recipes.Passage, error) {
		return func(ctx context.Context) (recipes.Passage, error) {
			return b.EnterAnnounced(ctx, uuid.New(), nil, joined)
		}
	})
	return place.Znode, entered
}

// enters calls Enter in a goroutine.
func enters(ctx context.Context, b recipes.DoubleBarrier) <-chan zktest.Outcome[recipes.Passage] {
	return zktest.Go(ctx, func(ctx context.Context) (recipes.Passage, error) { return b.Enter(ctx, nil) })
}

func statOf(t *testing.T, ctx context.Context, s recipes.Client, znode string) session.Stat {
	t.Helper()
	return must.Get(s.(interface {
		Stat(context.Context, string) (session.Stat, error)
	}).Stat(ctx, znode))(t)
}

// Resume checks that the member has entered: a member that waits is not resumed as one inside.
// It can still wait.
func TestAMemberThatWaitsIsNotResumedAsOneInside(t *testing.T) {
	zktest.Everywhere(t, func(t *testing.T, addr, path string) {
		ctx, s, other := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr)
		znode, _ := waitIn(ctx, memberAt(t, s, path, 2))
		token := recipes.Token(statOf(t, ctx, other, znode).Czxid)
		s = zktest.Move(t, addr, s)
		b := memberAt(t, s, path, 2)
		for range 2 {
			if _, err := b.Resume(ctx, znode, token); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("one that waits: %v", err)
			}
		}
		if _, err := b.ResumeLeaving(ctx, znode, token, []string{znode}); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("one that waits, as one that leaves: %v", err)
		}
		entered := zktest.Go(ctx, func(ctx context.Context) (recipes.Passage, error) { return b.ResumeWaiting(ctx, znode, unannounced) })
		theirs := must.Get(memberAt(t, other, path, 2).Enter(ctx, nil))(t)
		if p := <-entered; p.Err != nil || !slices.Contains(theirs.Members(), znode) {
			t.Errorf("it entered with %v: %v", theirs.Members(), p.Err)
		}
	})
}

// A znode of another session or of another recipe is not resumed, and is kept.
func TestZnodesOfOthersAreNotResumedAsMembers(t *testing.T) {
	zktest.Everywhere(t, func(t *testing.T, addr, path string) {
		ctx, s, other := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr)
		theirs := must.Get(memberAt(t, other, path, 1).Enter(ctx, nil))(t)
		s = zktest.Move(t, addr, s)
		b := memberAt(t, s, path, 1)
		check := func(what string, want error, p recipes.Passage, err error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, %v", what, p, err)
			}
		}
		leaving := func(znode string, token recipes.Token, members ...string) (recipes.Passage, error) {
			return b.ResumeLeaving(ctx, znode, token, members)
		}
		p, err := leaving(theirs.Znode(), theirs.Token(), theirs.Znode())
		check("another session's that leaves", recipes.ErrRemoved, p, err)
		p, err = b.ResumeWaiting(ctx, theirs.Znode(), unannounced)
		check("another session's that waits", recipes.ErrRemoved, p, err)
		gone := path + "/_c_00000000-0000-0000-0000-000000000000-member-0000000099"
		p, err = leaving(gone, 1, theirs.Znode())
		check("none of the members", recipes.ErrInvalid, p, err)
		p, err = leaving(gone, 0, gone)
		check("no token", recipes.ErrInvalid, p, err)
		p, err = leaving(path+"/ready", 1, path+"/ready")
		check("ready", recipes.ErrInvalid, p, err)
		p, err = leaving(gone, 1, gone, "/elsewhere/member-0000000001")
		check("members of another path", recipes.ErrInvalid, p, err)
		p, err = b.ResumeWaiting(ctx, gone, unannounced)
		check("what is gone", recipes.ErrRemoved, p, err)
		zktest.GuardedWrite(t, theirs, path+"-written")
		must.Report(t, theirs.Leave(ctx))
	})
}

// In a dialect, a member may have deleted its znode and ready before its process ended. The
// other members have left, and even the path may be gone. Then Leave waits for no member.
func TestTheLastToLeaveIsResumedWhereNothingIsLeft(t *testing.T) {
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		for _, left := range []int{0, 1, 2} { // which of the member's znode, ready and the path still exist
			srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
			s, other := zktest.Open(t, srv), zktest.Open(t, srv)
			at := func(s recipes.Client) member {
				cfg := recipes.DoubleBarrierConfig{Size: 1, Dialect: d}
				return must.Get(s.DoubleBarrier("/b", cfg))(t).(member)
			}
			had := must.Get(at(s).Enter(ctx, nil))(t)
			for _, path := range []string{had.Znode(), "/b/ready", "/b"}[:3-left] {
				must.Do(t, zktest.BarrierAt(t, other, path).Remove(ctx))
			}
			s = zktest.Move(t, srv.Addr(), s)
			p, err := at(s).ResumeLeaving(ctx, had.Znode(), had.Token(), had.Members())
			if err != nil {
				t.Errorf("%s, %d left: %v", d, left, err)
				continue
			}
			must.Report(t, s.(zktest.Movable).DropRest(ctx))
			if err := p.Leave(ctx); err != nil {
				t.Errorf("%s, %d left: %v", d, left, err)
			}
			again := must.Get(at(other).Enter(ctx, nil))(t) // the next round
			must.Report(t, again.Leave(ctx))
		}
	}
}

// Another member of the round leaves, and enters the next round under the same name, as
// kazoo's members do. A member that is still leaving the earlier round does not wait for it.
func TestAMemberOfTheNextRoundIsNotWaitedFor(t *testing.T) {
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
		s, other := zktest.Open(t, srv), zktest.Open(t, srv)
		at := func(s recipes.Client) member {
			return must.Get(s.DoubleBarrier("/b", recipes.DoubleBarrierConfig{Size: 2, Dialect: d}))(t).(member)
		}
		names := must.Get(other.Names("/b"))(t)
		name := nameOfMember(d)
		first := must.Get(names.Register(ctx, name, nil))(t)
		had := must.Get(at(s).Enter(ctx, nil))(t) // this is the last member, which creates ready
		for _, path := range []string{had.Znode(), "/b/ready"} {
			must.Do(t, zktest.BarrierAt(t, other, path).Remove(ctx))
		}
		s = zktest.Move(t, srv.Addr(), s)
		p := must.Get(at(s).ResumeLeaving(ctx, had.Znode(), had.Token(), had.Members()))(t)
		must.Do(t, first.Unregister(ctx))
		must.Get(names.Register(ctx, name, nil))(t)
		if err := p.Leave(ctx); err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
}
