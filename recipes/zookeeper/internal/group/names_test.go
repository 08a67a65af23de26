package group_test

import (
	"context"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestNamesCosts(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		n := zktest.NamesAt(t, s, "/n")
		if err := n.RegisterPersistent(ctx, "first", nil); err != nil { // creates the path and the receipt
			t.Fatal(err)
		}
		var r recipes.Registration
		zktest.Costs(t, srv, "registering", 1, 2, 0, func() { r = must.Get(n.Register(ctx, "db", nil))(t) })
		zktest.Costs(t, srv, "registering for good", 1, 0, 0, func() { _ = n.RegisterPersistent(ctx, "mail", nil) })
		zktest.Costs(t, srv, "looking up", 0, 1, 0, func() { _, _ = n.Lookup(ctx, "db") })
		zktest.Costs(t, srv, "listing three", 0, 4, 0, func() { _, _ = n.List(ctx) })
		records := must.Get(n.Watch(ctx, "db"))(t)
		<-records
		// Waiting sends nothing.
		zktest.Idle(t, srv)
		zktest.Costs(t, srv, "the update that a watch sees", 1, 1, 1, func() {
			_ = r.Update(ctx, []byte("x"))
			<-records
		})
		zktest.Costs(t, srv, "unregistering what was for good", 1, 1, 0, func() { _ = n.Unregister(ctx, "mail", 0) })
		if got, want := zktest.Shape(srv, "/n"), "_c_<guid>-receipt-0000000000 db first"; got != want {
			t.Errorf("znodes %q; want %q", got, want)
		}
	})
}
