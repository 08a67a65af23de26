package zookeeper_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestOnlyPlacesCarryTheSessionsIdentity: where only the creator may write, a server
// gives the right to all that the connection has proved. The identity of a session must
// not be in the ACL of what outlives it, one entry for each session.
func TestOnlyPlacesCarryTheSessionsIdentity(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	for _, user := range []string{"me", "you"} {
		s := must[recipes.Session](t)(zookeeper.Open(ctx, recipes.SessionConfig{
			Servers: []string{srv.Addr()},
			Digest:  &recipes.Digest{User: user, Password: "secret"},
			ACL: []recipes.ACL{
				{Permissions: recipes.PermAll, Scheme: "auth"},
				{Permissions: recipes.PermRead, Scheme: "world", ID: "anyone"},
			},
		}))
		t.Cleanup(func() { s.Close(ctx) })
		for _, dir := range []string{"/" + user + "/a", "/" + user + "/b"} {
			l := must[recipes.Lock](t)(s.Lock(dir, recipes.LockConfig{Strategy: recipes.Handoff}))
			for range 2 {
				h := must[recipes.Hold](t)(l.Acquire(ctx))
				if err := h.Write(ctx, recipes.Create(dir+"/"+path.Base(h.Znode())+"-wrote", nil)); err != nil {
					t.Fatal(err)
				}
				if err := h.Release(ctx); err != nil {
					t.Fatal(err)
				}
			}
			must[recipes.Hold](t)(l.Acquire(ctx)) // stays
		}
		must[recipes.Membership](t)(must[recipes.Group](t)(s.Group("/"+user+"/g", recipes.GroupConfig{Name: "n"})).Join(ctx, nil))
	}
	places := 0
	for _, n := range srv.Tree() {
		top, _, inside := strings.Cut(strings.TrimPrefix(n.Path, "/"), "/")
		if top == "zookeeper" || top == "" {
			continue
		}
		has := func(user string) bool {
			return slices.ContainsFunc(n.ACL, func(a zkserver.ACL) bool { return a.Scheme == "digest" && strings.HasPrefix(a.ID, user) })
		}
		place := inside && strings.HasPrefix(path.Base(n.Path), "lock-") && !strings.HasSuffix(n.Path, "-wrote")
		if place {
			places++
		}
		if !has(top+":") || has("zkrecipes-") != place || len(n.ACL) != 2 && !place {
			t.Errorf("%s has the ACL %v", n.Path, n.ACL)
		}
	}
	if places != 4 {
		t.Errorf("%d places, want 4", places)
	}
}

// byCreator is for a session that leaves what it creates to its user.
func byCreator(addr string) recipes.SessionConfig {
	return recipes.SessionConfig{
		Servers: []string{addr},
		Digest:  &recipes.Digest{User: "me", Password: "secret"},
		ACL:     []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}},
	}
}

// onlyByUser checks the ACL of what such a session has created for others.
func onlyByUser(t *testing.T, addr string, paths ...string) {
	t.Helper()
	raw, _, err := zk.Connect([]string{addr}, deadline, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if err := raw.AddAuth("digest", []byte("me:secret")); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if acl, _, err := raw.GetACL(path); err != nil || len(acl) != 1 || !strings.HasPrefix(acl[0].ID, "me:") {
			t.Errorf("%s has the ACL %v (%v)", path, acl, err)
		}
	}
}

// A contender that has waited without a place reads its znode, and needs no identity for that.
func TestAWaiterWithoutAPlaceGivesNoIdentity(t *testing.T) {
	everywhere(t, func(t *testing.T, addr, at string) {
		ctx := bounded(t)
		open := func() recipes.Session {
			s := must[recipes.Session](t)(zookeeper.Open(ctx, byCreator(addr)))
			t.Cleanup(func() { s.Close(context.Background()) })
			return s
		}
		lock := func(s recipes.Session, joined func(recipes.Place)) recipes.Lock {
			return must[recipes.Lock](t)(s.Lock(at, recipes.LockConfig{Strategy: recipes.Predecessor, Joined: joined}))
		}
		first, second := must[recipes.Hold](t)(lock(open(), nil).Acquire(ctx)), open()
		joined, granted := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := lock(second, func(recipes.Place) { close(joined) }).Acquire(ctx)
			granted <- err
		}()
		<-joined
		if err := first.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-granted; err != nil {
			t.Fatal(err)
		}
		must[int64](t)(must[recipes.Counter](t)(second.Counter(at+"-counter", recipes.CounterConfig{})).Add(ctx, 1))
		onlyByUser(t, addr, at+"-counter")
	})
}

// A session that has taken up a place, or something else, knows what "auth" means as before.
func TestAResumedSessionCreatesAsItsUser(t *testing.T) {
	everywhere(t, func(t *testing.T, addr, at string) {
		for _, strategy := range recipes.Strategies() {
			ctx, at, cfg := bounded(t), at+"-"+string(strategy), byCreator(addr)
			first := must[recipes.Session](t)(zookeeper.Open(ctx, cfg))
			lock := func(s recipes.Session) recipes.Lock {
				return must[recipes.Lock](t)(s.Lock(at, recipes.LockConfig{Strategy: strategy}))
			}
			had := must[recipes.Hold](t)(lock(first).Acquire(ctx))
			if err := first.(movable).Detach(ctx); err != nil {
				t.Fatal(err)
			}
			second := must[recipes.Session](t)(zookeeper.Resume(ctx, cfg, first.(movable).ResumeTicket(), time.Now()))
			t.Cleanup(func() { second.Close(context.Background()) })
			taken := must[recipes.Hold](t)(lock(second).(taker[recipes.Hold]).TakeUp(ctx, had.Znode(), had.Token()))
			if err := second.(movable).DropRest(ctx); err != nil {
				t.Fatal(err)
			}
			if err := taken.Write(ctx, recipes.Create(at+"-written", nil)); err != nil {
				t.Fatal(err)
			}
			if err := taken.Release(ctx); err != nil { // a place is handed over by the identity
				t.Fatal(err)
			}
			must[int64](t)(must[recipes.Counter](t)(second.Counter(at+"-counter", recipes.CounterConfig{})).Add(ctx, 1))
			onlyByUser(t, addr, at+"-counter", at+"-written")
		}
	})
}
