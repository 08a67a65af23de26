package zookeeper_test

import (
	"path"
	"slices"
	"strings"
	"testing"

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
