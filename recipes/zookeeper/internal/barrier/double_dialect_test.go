package barrier_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// virtual is a scene on virtual time.
type virtual struct {
	*zktest.Scene
	srv *zkserver.Server
}

// inDialects runs a test with the dialect of each library.
func inDialects(t *testing.T, test func(s virtual, d recipes.Dialect)) {
	t.Helper()
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		t.Run(string(d), func(t *testing.T) {
			zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, _ recipes.Client) {
				dial := func(_, _ string, _ time.Duration) (net.Conn, error) {
					return zktest.LinkTo(srv.ServeConn).Dial(ctx, "", "")
				}
				raw, _, err := zk.Connect([]string{"127.0.0.1:1"}, watchdog.Patience, zk.WithLogInfo(false), zk.WithDialer(dial))
				must.Do(t, err)
				defer raw.Close()
				test(virtual{&zktest.Scene{T: t, Ctx: ctx, Path: "/b", Raw: raw}, srv}, d)
			})
		})
	}
}

// barrier is the double barrier of a new session.
func (s virtual) barrier(d recipes.Dialect, size int) recipes.DoubleBarrier {
	s.Helper()
	return s.barrierOf(zktest.OpenVirtual(s.T, s.srv), d, size)
}

func (s virtual) barrierOf(session recipes.Client, d recipes.Dialect, size int) recipes.DoubleBarrier {
	s.Helper()
	return must.Get(session.DoubleBarrier(s.Path, recipes.DoubleBarrierConfig{Size: size, Dialect: d}))(s.T)
}

// theirs creates the znode of a member as the library does.
func (s virtual) theirs(d recipes.Dialect) string {
	s.Helper()
	return s.Make(s.Path+"/"+nameOfMember(d), nil, zk.FlagEphemeral)
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

func (s virtual) ready() string { return s.Path + "/ready" }

func (s virtual) remove(path string) {
	s.Helper()
	must.Do(s, s.Raw.Delete(path, -1))
}

// has checks how many children there are once all goroutines wait.
func (s virtual) has(children int) {
	s.Helper()
	synctest.Wait()
	if names := s.Children(s.Path); len(names) != children {
		s.Fatalf("the children are %q; want %d", names, children)
	}
}

// under is a call in another goroutine.
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
		u.err = p.Leave(s.Ctx)
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
		u.s.Fatalf("the call has returned %v, %v; it should wait", u.got, u.err)
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
		u.s.Fatal("the call still waits")
	}
	if u.err != nil {
		u.s.Fatal(u.err)
	}
	return u.got
}

// The first of kazoo's members that leaves deletes ready, possibly before ours has read it.
func TestADoubleBarrierInADialectIsEnteredByAReadyThatIsGone(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		first := s.theirs(d)
		ours := s.enter(s.Ctx, s.barrier(d, 3))
		ours.waits()
		if _, err := s.Raw.Multi(
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

// During a round, ours creates no znode: the members that leave would wait for it.
func TestADoubleBarrierInADialectWaitsForTheRoundBefore(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		inside := s.theirs(d)
		s.Make(s.ready(), nil, 0)
		ours := s.enter(s.Ctx, s.barrier(d, 2))
		ours.waits()
		s.has(2)
		s.remove(inside) // now ready has no members
		s.has(1)
		if s.Children(s.Path)[0] == "ready" {
			s.Error("ready still exists")
		}
		ours.waits()
		s.theirs(d)
		s.Make(s.ready(), nil, 0)
		ours.returns()
	})
}

// A ready that is older than the member's znode does not admit the member. It was created after
// the member had found no ready, and before the member's znode was created.
func TestADoubleBarrierInADialectIsNotEnteredByAnOlderReady(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		session := zktest.OpenVirtual(s.T, s.srv)
		zktest.Between(s.srv, session, zktest.Op(zkserver.OpCreate, s.Path+"/"), func() { s.Make(s.ready(), nil, 0) })
		ours := s.enter(s.Ctx, s.barrierOf(session, d, 2))
		ours.waits()
		s.remove(s.ready())
		ours.waits()
		s.theirs(d)
		s.Make(s.ready(), nil, 0)
		ours.returns()
	})
}

// A ready that is younger than the member admits it. That ready may have been created before
// the member read it, and some of its members may have left.
func TestADoubleBarrierInADialectIsEnteredByAYoungerReady(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		s.theirs(d)
		session := zktest.OpenVirtual(s.T, s.srv)
		met := zktest.Between(s.srv, session, zktest.Op(zkserver.OpExists, s.ready()), func() { s.Make(s.ready(), nil, 0) })
		if p := s.enter(s.Ctx, s.barrierOf(session, d, 3)).returns(); len(p.Members()) != 2 || !met() {
			s.Errorf("entered with %q; met: %v", p.Members(), met())
		}
	})
}

// A member of the library enters again under the same name, and waits for ours to leave. Ours
// does not wait for it.
func TestADoubleBarrierInADialectIsLeftThoughAnotherEntersAgain(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		var lowest, other string
		for _, path := range []*string{&lowest, &other} {
			name := nameOfMember(d)
			*path = s.Make(s.Path+"/"+strings.Repeat("0", 8)+name[8:], nil, zk.FlagEphemeral)
		}
		ours := s.enter(s.Ctx, s.barrier(d, 3)).returns()
		left := s.leave(ours)
		left.waits()
		var again []any
		for _, path := range []string{lowest, other} {
			again = append(again, &zk.DeleteRequest{Path: path, Version: -1}, &zk.CreateRequest{Path: path, Flags: zk.FlagEphemeral, Acl: zk.WorldACL(zk.PermAll)})
		}
		must.Get(s.Raw.Multi(again...))(s)
		left.returns()
	})
}

// kazoo's lowest member also waits until ready is gone. So in kazoo's dialect each member
// deletes ready when it leaves, and in Curator's the last one does.
func TestADoubleBarrierInADialectDeletesItsReady(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		lowest := s.Make(s.Path+"/"+strings.Repeat("0", 8)+nameOfMember(d)[8:], nil, zk.FlagEphemeral)
		left := s.leave(s.enter(s.Ctx, s.barrier(d, 2)).returns())
		left.waits()
		s.has(map[recipes.Dialect]int{recipes.Kazoo: 1, recipes.Curator: 2}[d])
		s.remove(lowest)
		left.returns()
		s.has(0)
	})
}

// Another client deletes the znode of the last member while it leaves. In Curator's dialect, ready
// is still deleted: otherwise Curator's next member would enter alone. In kazoo's, it remains
// until our next member enters or the session that has created it ends.
func TestADoubleBarrierInADialectDeletesItsReadyThoughItsZnodeIsGone(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		session := zktest.OpenVirtual(s.T, s.srv)
		ours := s.enter(s.Ctx, s.barrierOf(session, d, 1)).returns()
		s.has(2)
		met := zktest.Between(s.srv, session, zktest.Op(zkserver.OpMulti), func() { s.remove(ours.Znode()) })
		s.leave(ours).returns()
		if !met() {
			s.Error("the case was not met")
		}
		s.has(map[recipes.Dialect]int{recipes.Kazoo: 1, recipes.Curator: 0}[d])
	})
}

// The ready of a member that dies is deleted with its session. Otherwise Curator's next member
// would enter alone.
func TestADoubleBarrierInADialectLeavesNoReadyWhenItDies(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		dead, end := zktest.OpenIn(s.T, s.srv)
		s.enter(s.Ctx, s.barrierOf(dead, d, 1)).returns()
		s.has(2)
		end()
		s.has(0)
	})
}

// A member of another dialect joins while ours waits. Ours does not count it, but it counts
// ours. When ours counts again, it finds the other one and gives up.
func TestADoubleBarrierInADialectSeesAThirdPartyWhileItWaits(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		ours := s.enter(s.Ctx, s.barrier(d, 2))
		ours.waits()
		s.theirs(recipes.ZooKeeper)
		s.theirs(d)
		s.Make(s.ready(), nil, 0)
		<-ours.done
		s.Is(ours.err, recipes.ErrForeign)
		s.has(3)
	})
}

// The barrier ignores a name that no library gives to a member, though a parser of GUIDs accepts it.
func TestADoubleBarrierIgnoresOtherFormsOfAGUID(t *testing.T) {
	inDialects(t, func(s virtual, d recipes.Dialect) {
		for _, name := range []string{"{%s}", "urn:uuid:%s"} {
			s.Make(s.Path+"/"+fmt.Sprintf(name, uuid.NewString()), nil, zk.FlagEphemeral)
		}
		s.enter(s.Ctx, s.barrier(d, 1)).returns()
	})
}

// A member of another library that joins while ours waits counts ours, and creates ready.
func TestADoubleBarrierOfAnotherLibraryIsRefused(t *testing.T) {
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		zktest.OnBoth(t, func(s *zktest.Scene) {
			failed := enters(s.Ctx, doubleBarrierAt(s.T, s.Session(), s.Path, 2))
			for len(s.Children(s.Path)) == 0 && s.Ctx.Err() == nil { // each listing is a round trip
			}
			s.Make(s.Path+"/"+nameOfMember(d), nil, zk.FlagEphemeral)
			s.Make(s.Path+"/ready", nil, 0)
			s.Is((<-failed).Err, recipes.ErrForeign)
		})
	}
}
