package zookeeper_test

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

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

// onlyByUser checks the ACL of what is directly below the root: what the session creates for others.
func onlyByUser(t *testing.T, srv *zkserver.Server, paths ...string) {
	t.Helper()
	for _, n := range srv.Tree() {
		if slices.Contains(paths, n.Path) && (len(n.ACL) != 1 || !strings.HasPrefix(n.ACL[0].ID, "me:")) {
			t.Errorf("%s has the ACL %v", n.Path, n.ACL)
		}
	}
}

func byCreator(srv *zkserver.Server) recipes.SessionConfig {
	return recipes.SessionConfig{
		Servers: []string{srv.Addr()},
		Digest:  &recipes.Digest{User: "me", Password: "secret"},
		ACL:     []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}},
	}
}

// A contender that has waited without a place reads its znode, and needs no identity for that.
func TestAWaiterWithoutAPlaceGivesNoIdentity(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	joined := make(chan struct{})
	line := func(joined func(recipes.Place)) recipes.Lock {
		s := must[recipes.Session](t)(zookeeper.Open(ctx, byCreator(srv)))
		t.Cleanup(func() { s.Close(ctx) })
		if joined != nil {
			t.Cleanup(func() {
				must[int64](t)(must[recipes.Counter](t)(s.Counter("/counter", recipes.CounterConfig{})).Add(ctx, 1))
				onlyByUser(t, srv, "/counter")
			})
		}
		return must[recipes.Lock](t)(s.Lock("/line", recipes.LockConfig{Strategy: recipes.Predecessor, Joined: joined}))
	}
	first, granted := must[recipes.Hold](t)(line(nil).Acquire(ctx)), make(chan error, 1)
	second := line(func(recipes.Place) { close(joined) })
	go func() { _, err := second.Acquire(ctx); granted <- err }()
	<-joined
	if err := first.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-granted; err != nil {
		t.Fatal(err)
	}
}

// A session that has taken up a place, or something else, knows what "auth" means as before.
func TestAResumedSessionCreatesAsItsUser(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		t.Run(string(strategy), func(t *testing.T) {
			srv, ctx := embedded(t), bounded(t)
			cfg := byCreator(srv)
			first := must[recipes.Session](t)(zookeeper.Open(ctx, cfg))
			lock := func(s recipes.Session) recipes.Lock {
				return must[recipes.Lock](t)(s.Lock("/line", recipes.LockConfig{Strategy: strategy}))
			}
			had := must[recipes.Hold](t)(lock(first).Acquire(ctx))
			if err := first.(movable).Detach(ctx); err != nil {
				t.Fatal(err)
			}
			second := must[recipes.Session](t)(zookeeper.Resume(ctx, cfg, first.(movable).ResumeTicket(), time.Now()))
			t.Cleanup(func() { second.Close(ctx) })
			taken := must[recipes.Hold](t)(lock(second).(taker[recipes.Hold]).TakeUp(ctx, had.Znode(), had.Token()))
			if err := second.(movable).DropRest(ctx); err != nil {
				t.Fatal(err)
			}
			if err := taken.Write(ctx, recipes.Create("/written", nil)); err != nil {
				t.Fatal(err)
			}
			must[int64](t)(must[recipes.Counter](t)(second.Counter("/counter", recipes.CounterConfig{})).Add(ctx, 1))
			onlyByUser(t, srv, "/counter", "/written")
		})
	}
}
