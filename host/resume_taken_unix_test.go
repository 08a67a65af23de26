//go:build unix

package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// What another one has made in the place of what the session had is not taken up: nothing is
// granted, and it stays. The rest of the session is taken up.
func TestAPluginTakesUpOnlyWhatTheSessionHad(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
	defer cancel()
	zk := zooKeeper(t)
	first := launchReal(ctx, t)
	first.serve(ctx, []string{zk.Addr()}, nil)
	rival, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{zk.Addr()}, SessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer rival.Close(context.Background())
	theirs := acquired(ctx, t, rival, "/theirs")
	awaited := acquired(ctx, t, rival, "/awaited")

	held, taken := first.granted(first.lock(ctx, "/held"), "held", nil), first.granted(first.lock(ctx, "/taken"), "taken", nil)
	name, earlier := first.granted(first.name(ctx, "it"), "it", nil), first.granted(first.name(ctx, "again"), "first", nil)
	first.useAndRelease(ctx, "first")
	later := first.granted(first.name(ctx, "again"), "second", nil)
	go first.lock(ctx, "/awaited")("awaited", nil)
	place := contender(ctx, t, zk, first.opened.GetSessionId(), "/awaited")

	first.reap()
	for _, znode := range []string{taken.GetZnode(), name.GetZnode(), place} {
		if err := theirs.Write(ctx, recipes.Delete(znode, recipes.AnyVersion)); err != nil {
			t.Fatal(err)
		}
	}
	for _, znode := range []string{taken.GetZnode(), place} {
		if err := theirs.Write(ctx, recipes.Create(znode, nil)); err != nil {
			t.Fatal(err)
		}
	}
	names, err := rival.Names("/names")
	if err != nil {
		t.Fatal(err)
	}
	registered, err := names.Register(ctx, "it", []byte("theirs"))
	if err != nil {
		t.Fatal(err)
	}

	second := launchReal(ctx, t)
	second.serve(ctx, []string{zk.Addr()}, first.resumption())
	session := second.opened.GetSession()
	before := state(zk)
	for _, bad := range []struct {
		id     string
		had    *pb.Grant
		takeUp ask
		want   error
	}{
		{"a lock's znode that was made anew", taken, second.lock(ctx, "/taken"), recipes.ErrRemoved},
		{"the same with its token", &pb.Grant{Znode: taken.GetZnode(), Token: czxid(t, zk, taken.GetZnode())}, second.lock(ctx, "/taken"), recipes.ErrRemoved},
		{"a place in line that was made anew", &pb.Grant{Znode: place}, second.lock(ctx, "/awaited"), recipes.ErrRemoved},
		{"a name that another one has registered", name, second.name(ctx, "it"), recipes.ErrRemoved},
		{"the same with its token", &pb.Grant{Znode: name.GetZnode(), Token: int64(registered.Token())}, second.name(ctx, "it"), recipes.ErrRemoved},
		{"a name that the session has registered again", earlier, second.name(ctx, "again"), recipes.ErrRemoved},
		{"another session's lock", &pb.Grant{Znode: theirs.Znode(), Token: int64(theirs.Token())}, second.lock(ctx, "/theirs"), recipes.ErrRemoved},
		{"a lock at another path", held, second.lock(ctx, "/theirs"), recipes.ErrInvalid},
		{"a lock with another token", &pb.Grant{Znode: held.GetZnode(), Token: held.GetToken() + 1}, second.lock(ctx, "/held"), recipes.ErrRemoved},
	} {
		if _, err := bad.takeUp(bad.id, bad.had); !errors.Is(err, bad.want) || errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("%s: %v", bad.id, err)
		}
		if _, err := pb.NewGrantServiceClient(second.conn).Write(ctx, &pb.WriteRequest{Session: session, RequestId: bad.id}); err == nil {
			t.Errorf("%s: it can be written under", bad.id)
		} else if err, _ := wire.Error(err); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("%s: a write under it: %v", bad.id, err)
		}
		unchanged(t, bad.id, before, state(zk))
	}

	second.granted(second.lock(ctx, "/held"), "held", held)
	second.granted(second.name(ctx, "again"), "second", later)
	second.dropRest(ctx)
	unchanged(t, "DropRest", before, state(zk))
	second.useAndRelease(ctx, "held")
	second.useAndRelease(ctx, "second")
	if _, err := pb.NewSessionServiceClient(second.conn).Close(ctx, &pb.CloseRequest{Session: session}); err != nil {
		t.Error(err)
	}
	for _, g := range []recipes.Grant{theirs, awaited, registered} {
		if err := errors.Join(g.Err(), g.Write(ctx)); err != nil {
			t.Error(err)
		}
	}
	for _, znode := range []string{taken.GetZnode(), place} {
		czxid(t, zk, znode)
	}
}

func acquired(ctx context.Context, t *testing.T, s recipes.Recipes, at string) recipes.Hold {
	t.Helper()
	l, err := s.Lock(at, recipes.LockConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := l.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// contender waits for a session's contender at a path.
func contender(ctx context.Context, t *testing.T, zk *zkserver.Server, session int64, at string) string {
	t.Helper()
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		for _, n := range zk.Tree() {
			if n.Stat.EphemeralOwner == session && strings.HasPrefix(n.Path, at+"/") {
				return n.Path
			}
		}
	}
	t.Fatalf("nobody waits at %s", at)
	return ""
}

// czxid is the transaction that has created a znode.
func czxid(t *testing.T, zk *zkserver.Server, znode string) int64 {
	t.Helper()
	for _, n := range zk.Tree() {
		if n.Path == znode {
			return n.Stat.Czxid
		}
	}
	t.Fatalf("%s is gone", znode)
	return 0
}
