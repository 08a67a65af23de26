package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func namesAt(t *testing.T, s recipes.Session, path string) recipes.Names {
	t.Helper()
	return must[recipes.Names](t)(s.Names(path))
}

func TestNamesCosts(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Session) {
		n := namesAt(t, s, "/n")
		if err := n.RegisterPersistent(ctx, "first", nil); err != nil { // makes the path and the receipt
			t.Fatal(err)
		}
		var r recipes.Registration
		costs(t, srv, "registering", 1, 2, 0, func() { r = must[recipes.Registration](t)(n.Register(ctx, "db", nil)) })
		costs(t, srv, "registering for good", 1, 0, 0, func() { _ = n.RegisterPersistent(ctx, "mail", nil) })
		costs(t, srv, "looking up", 0, 1, 0, func() { _, _ = n.Lookup(ctx, "db") })
		costs(t, srv, "listing three", 0, 4, 0, func() { _, _ = n.List(ctx) })
		records := must[<-chan recipes.Record](t)(n.Watch(ctx, "db"))
		<-records
		// No recipe polls.
		idle(t, srv)
		costs(t, srv, "the update that a watch sees", 1, 1, 1, func() {
			_ = r.Update(ctx, []byte("x"))
			<-records
		})
		costs(t, srv, "unregistering what was for good", 1, 1, 0, func() { _ = n.Unregister(ctx, "mail", 0) })
		if got, want := shape(srv, "/n"), "_c_<guid>-receipt-0000000000 db first"; got != want {
			t.Errorf("znodes %q; want %q", got, want)
		}
	})
}

func TestFaultSweepNames(t *testing.T) {
	free := func(st *stage, _ error) {
		st.awaitNoNames()
		n := namesAt(st.t, st.other, sweepPath)
		r, err := n.Register(st.ctx, "db", nil)
		if err != nil {
			st.t.Fatalf("after the fault: %v", err)
		}
		if err := r.Unregister(st.ctx); err != nil {
			st.t.Error(err)
		}
	}
	runSweeps(t, "names", []sweep{
		{
			name: "session", check: free,
			act: func(ctx context.Context, st *stage) error {
				r, err := namesAt(st.t, st.victim, sweepPath).Register(ctx, "db", []byte("x"))
				if err != nil {
					return err
				}
				return errors.Join(settled(r.Update(ctx, []byte("y"))), giveBack(r.Unregister))
			},
		},
		{
			name: "persistent",
			may:  []error{recipes.ErrUnknownOutcome},
			act: func(ctx context.Context, st *stage) error {
				n := namesAt(st.t, st.victim, sweepPath)
				if err := n.RegisterPersistent(ctx, "db", []byte("x")); err != nil {
					if errors.Is(err, recipes.ErrNodeExists) {
						st.t.Error("its own registration is taken for another's")
					}
					return err
				}
				return n.Unregister(ctx, "db", 0)
			},
			check: func(st *stage, err error) {
				_, lookErr := namesAt(st.t, st.other, sweepPath).Lookup(st.ctx, "db")
				if err == nil && !errors.Is(lookErr, recipes.ErrNoNode) {
					st.t.Errorf("registered and unregistered, and there is %v", lookErr)
				}
			},
			left: func(path string) bool { return strings.HasSuffix(path, "/db") },
		},
	})
}

// awaitNoNames waits until the victim has no name, while its session lives.
func (st *stage) awaitNoNames() {
	st.t.Helper()
	for r := range must[<-chan recipes.Record](st.t)(namesAt(st.t, st.other, sweepPath).Watch(st.ctx, "db")) {
		if r.None() {
			return
		}
	}
	st.t.Error("the victim has left a name behind")
}
