package zookeeper_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// virtual is a scene on virtual time.
type virtual struct {
	*scene
	srv *zkserver.Server
}

// inDialects runs a test with the dialect of each library.
func inDialects(t *testing.T, test func(s virtual, d recipes.Dialect)) {
	t.Helper()
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		t.Run(string(d), func(t *testing.T) {
			onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, _ recipes.Client) {
				dial := func(_, _ string, _ time.Duration) (net.Conn, error) { return (&network{srv: srv}).dial(ctx, "", "") }
				raw, _, err := zk.Connect([]string{"127.0.0.1:1"}, watchdog.Patience, zk.WithLogInfo(false), zk.WithDialer(dial))
				if err != nil {
					t.Fatal(err)
				}
				defer raw.Close()
				test(virtual{&scene{T: t, ctx: ctx, path: "/b", raw: raw}, srv}, d)
			})
		})
	}
}

func (s virtual) barrier(d recipes.Dialect, size int) recipes.DoubleBarrier {
	s.Helper()
	return must.Get(openVirtual(s.T, s.srv).DoubleBarrier(s.path, recipes.DoubleBarrierConfig{Size: size, Dialect: d}))(s.T)
}

// theirs is the znode of a member as the library makes it.
func (s virtual) theirs(d recipes.Dialect) string {
	s.Helper()
	return s.make(s.path+"/"+nameOfMember(d), nil, zk.FlagEphemeral)
}

func nameOfMember(d recipes.Dialect) string {
	switch id := uuid.NewString(); d {
	case recipes.Curator:
		return id
	case recipes.Kazoo:
		return strings.ReplaceAll(id, "-", "")
	default:
		return "_c_" + id + "-member-0000000000"
	}
}

func (s virtual) ready() string { return s.path + "/ready" }

func (s virtual) remove(path string) {
	s.Helper()
	if err := s.raw.Delete(path, -1); err != nil {
		s.Fatal(err)
	}
}

// has checks how many children there are when nobody has anything left to do.
func (s virtual) has(children int) {
	s.Helper()
	synctest.Wait()
	if names := s.children(s.path); len(names) != children {
		s.Fatalf("the children are %q; want %d", names, children)
	}
}

// under is a call that is under way.
type under[T any] struct {
	s    virtual
	done chan struct{}
	got  T
	err  error
}

func (s virtual) enter(ctx context.Context, b recipes.DoubleBarrier) *under[recipes.Passage] {
	u := &under[recipes.Passage]{s: s, done: make(chan struct{})}
	go func() {
		defer close(u.done)
		u.got, u.err = b.Enter(ctx, nil)
	}()
	return u
}

func (s virtual) leave(p recipes.Passage) *under[bool] {
	u := &under[bool]{s: s, done: make(chan struct{})}
	go func() {
		defer close(u.done)
		u.err = p.Leave(s.ctx)
	}()
	return u
}

// waits checks that the call waits.
func (u *under[T]) waits() {
	u.s.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	select {
	case <-u.done:
		u.s.Fatalf("it has not waited: %v, %v", u.got, u.err)
	default:
	}
}

// returns checks that the call returns without an error.
func (u *under[T]) returns() T {
	u.s.Helper()
	synctest.Wait()
	select {
	case <-u.done:
	default:
		u.s.Fatal("it waits")
	}
	if u.err != nil {
		u.s.Fatal(u.err)
	}
	return u.got
}

// The member that comes last counts the others, and creates ready for them.
func TestADoubleBarrierInADialectCountsTheLibrarysMembers(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		inside := s.theirs(d)
		first := s.enter(s.ctx, s.barrier(d, 3))
		first.waits()
		s.has(2)
		last := s.enter(s.ctx, s.barrier(d, 3)).returns()
		s.has(4)
		if len(last.Members()) != 3 || !slices.Contains(last.Members(), inside) {
			s.Errorf("entered with %q", last.Members())
		}
		if _, stat, err := s.raw.Get(s.ready()); err != nil || stat.EphemeralOwner == 0 {
			s.Errorf("ready is %+v, %v", stat, err)
		}
		one, other := s.leave(first.returns()), s.leave(last)
		one.waits()
		other.waits()
		s.remove(inside)
		one.returns()
		other.returns()
		s.has(0)
	})
}

// The first of kazoo's members that leaves deletes ready, maybe before ours has read it.
func TestADoubleBarrierInADialectIsEnteredByAReadyThatIsGone(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		first := s.theirs(d)
		ours := s.enter(s.ctx, s.barrier(d, 3))
		ours.waits()
		if _, err := s.raw.Multi(
			&zk.CreateRequest{Path: s.ready(), Acl: zk.WorldACL(zk.PermAll)},
			&zk.DeleteRequest{Path: s.ready(), Version: -1},
			&zk.DeleteRequest{Path: first, Version: -1},
		); err != nil {
			s.Fatal(err)
		}
		s.leave(ours.returns()).returns()
		s.has(0)
	})
}

// A ready without members is of a round whose members have died. Theirs would enter with
// it.
func TestADoubleBarrierInADialectDeletesAReadyThatWasLeftBehind(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		s.make(s.ready(), nil, 0)
		ours := s.enter(s.ctx, s.barrier(d, 2))
		ours.waits()
		s.has(1)
		s.theirs(d)
		s.make(s.ready(), nil, 0)
		ours.returns()
	})
}

// As long as a round is on, ours makes no znode, for which those that leave would wait.
func TestADoubleBarrierInADialectWaitsForTheRoundBefore(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		inside := s.theirs(d)
		s.make(s.ready(), nil, 0)
		ours := s.enter(s.ctx, s.barrier(d, 2))
		ours.waits()
		s.has(2)
		s.remove(inside) // and its ready has nobody any more
		s.has(1)
		if s.children(s.path)[0] == "ready" {
			s.Error("ready is there")
		}
		ours.waits()
		s.theirs(d)
		s.make(s.ready(), nil, 0)
		ours.returns()
	})
}

// A ready that is older than the member lets nobody in: it was made when the member had
// looked, and had not made its znode.
func TestADoubleBarrierInADialectIsNotEnteredByAnOlderReady(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		made := false
		s.srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op == zkserver.OpCreate && !made && strings.HasPrefix(r.Path, s.path+"/") {
				made = true
				s.make(s.ready(), nil, 0)
			}
			return zkserver.Fault{}
		})
		ours := s.enter(s.ctx, s.barrier(d, 2))
		ours.waits()
		s.remove(s.ready())
		ours.waits()
		s.theirs(d)
		s.make(s.ready(), nil, 0)
		ours.returns()
	})
}

// A ready that is younger than the member lets it in, though it was made before the member
// looked for it, and though some of those that it was made for have left.
func TestADoubleBarrierInADialectIsEnteredByAYoungerReady(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		s.theirs(d)
		b := s.barrier(d, 3)
		looks := 0
		s.srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op == zkserver.OpExists && r.Path == s.ready() {
				if looks++; looks == 1 {
					s.make(s.ready(), nil, 0)
				}
			}
			return zkserver.Fault{}
		})
		if p := s.enter(s.ctx, b).returns(); len(p.Members()) != 2 {
			s.Errorf("entered with %q", p.Members())
		}
		if looks == 0 {
			s.Error("the case was not met")
		}
	})
}

// A member of theirs keeps its name when it enters again. Ours does not wait for it, for
// it waits for ours.
func TestADoubleBarrierInADialectIsLeftThoughAnotherEntersAgain(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		var lowest, other string
		for _, path := range []*string{&lowest, &other} {
			name := nameOfMember(d)
			*path = s.make(s.path+"/"+strings.Repeat("0", 8)+name[8:], nil, zk.FlagEphemeral)
		}
		ours := s.enter(s.ctx, s.barrier(d, 3)).returns()
		left := s.leave(ours)
		left.waits()
		var again []any
		for _, path := range []string{lowest, other} {
			again = append(again, &zk.DeleteRequest{Path: path, Version: -1}, &zk.CreateRequest{Path: path, Flags: zk.FlagEphemeral, Acl: zk.WorldACL(zk.PermAll)})
		}
		if _, err := s.raw.Multi(again...); err != nil {
			s.Fatal(err)
		}
		left.returns()
	})
}

// kazoo's lowest member waits for ready too, so each member deletes it when it leaves.
// Curator's delete it at the end.
func TestADoubleBarrierInADialectDeletesItsReady(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		lowest := s.make(s.path+"/"+strings.Repeat("0", 8)+nameOfMember(d)[8:], nil, zk.FlagEphemeral)
		left := s.leave(s.enter(s.ctx, s.barrier(d, 2)).returns())
		left.waits()
		s.has(map[recipes.Dialect]int{recipes.Kazoo: 1, recipes.Curator: 2}[d])
		s.remove(lowest)
		left.returns()
		s.has(0)
	})
}

func TestADoubleBarrierInADialectGivesUp(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		theirs := s.theirs(d)
		ctx, cancel := context.WithCancel(s.ctx)
		ours := s.enter(ctx, s.barrier(d, 3))
		ours.waits()
		cancel()
		<-ours.done
		s.is(ours.err, context.Canceled)
		s.has(1)
		s.remove(theirs)
	})
}

// The session of a member that dies takes its ready with it, which would let the next one
// of Curator's in alone.
func TestADoubleBarrierInADialectLeavesNoReadyWhenItDies(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		dead, end := openIn(s.T, s.srv)
		b := must.Get(dead.DoubleBarrier(s.path, recipes.DoubleBarrierConfig{Size: 1, Dialect: d}))(s.T)
		s.enter(s.ctx, b).returns()
		s.has(2)
		end()
		s.has(0)
	})
}

// A member of another dialect that comes while ours waits is not counted, and counts ours.
// Ours sees it when it counts again, and gives up.
func TestADoubleBarrierInADialectSeesAForeignMemberWhileItWaits(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		ours := s.enter(s.ctx, s.barrier(d, 2))
		ours.waits()
		s.theirs(recipes.ZooKeeper)
		s.theirs(d)
		s.make(s.ready(), nil, 0)
		<-ours.done
		s.is(ours.err, recipes.ErrForeign)
		s.has(3)
	})
}

// Members of two dialects do not count each other. So ours fails before it makes one.
func TestADoubleBarrierMeetsAMemberOfAnotherDialect(t *testing.T) {
	all := recipes.Dialects()
	for i, d := range all {
		for _, other := range []recipes.Dialect{all[(i+1)%len(all)], all[(i+2)%len(all)]} {
			onEmbedded(t, func(s *scene, _ *zkserver.Server) {
				theirs := s.make(s.path+"/"+nameOfMember(other), nil, zk.FlagEphemeral)
				b := must.Get(s.session().DoubleBarrier(s.path, recipes.DoubleBarrierConfig{Size: 2, Dialect: d}))(t)
				_, err := b.Enter(s.ctx, nil)
				var foreign *recipes.ForeignError
				if !errors.As(err, &foreign) || foreign.Dialect != other || foreign.Znode != theirs {
					t.Errorf("%s met %s: %v", d, other, err)
				}
				if names := s.children(s.path); len(names) != 1 {
					t.Errorf("the children are %q", names)
				}
			})
		}
	}
}
