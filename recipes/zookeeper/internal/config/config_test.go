package config_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestConfigurationCosts(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		c := zktest.ConfigAt(t, s, "/c")
		set := func(key string, expected recipes.Revision) recipes.Revision {
			t.Helper()
			return must.Get(c.Set(ctx, key, []byte("x"), expected))(t)
		}
		set("b/c", set("b/c", recipes.NoRevision)) // creates the path, the parent, the receipt and the count in b
		var revision recipes.Revision
		zktest.Costs(t, srv, "setting a new key", 1, 2, 0, func() { revision = set("a", recipes.NoRevision) })
		zktest.Costs(t, srv, "the first comparison in a directory", 4, 5, 0, func() { revision = set("a", revision) })
		zktest.Costs(t, srv, "setting a key", 1, 1, 0, func() { revision = set("a", revision) })
		zktest.Costs(t, srv, "getting a key", 0, 1, 0, func() { _, _ = c.Get(ctx, "a") })
		zktest.Costs(t, srv, "a snapshot of four", 0, 8, 0, func() { _, _ = c.Snapshot(ctx) })
		zktest.Costs(t, srv, "deleting a key", 1, 1, 0, func() { _ = c.Delete(ctx, "b/c", recipes.AnyRevision) })
		c2 := set("b/c2", recipes.NoRevision)
		zktest.Costs(t, srv, "deleting a key of a revision", 1, 1, 0, func() { _ = c.Delete(ctx, "b/c2", c2) })
		zktest.Costs(t, srv, "deleting a parent", 1, 2, 0, func() { must.Do(t, c.Delete(ctx, "b", recipes.AnyRevision)) })
		set("b", recipes.NoRevision)
		var key <-chan recipes.Entry
		zktest.Costs(t, srv, "beginning to watch a key", 0, 1, 0, func() { key = must.Get(c.Watch(ctx, "a"))(t) })
		tree := must.Get(c.WatchTree(ctx))(t)
		<-key
		<-tree
		// Waiting sends nothing.
		zktest.Idle(t, srv)
		zktest.Costs(t, srv, "the change that a watch of the key and one of the tree see", 1, 3, 1, func() {
			set("a", recipes.AnyRevision)
			<-key
			<-tree
		})
		if got, want := zktest.Shape(srv, "/c"), "_c_3-deletions _c_<guid>-receipt-0000000001 a b"; got != want {
			t.Errorf("znodes %q; want %q", got, want)
		}
	})
}

// CURATOR-688: Stat.version overflowed and froze a value.
func TestRevisionsOutliveTheVersion(t *testing.T) {
	srv := zktest.Embedded(t)
	s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	c := zktest.ConfigAt(t, s, "/c")
	values := must.Get(c.Watch(ctx, "a"))(t)
	revision := must.Get(c.Set(ctx, "a", []byte("0"), recipes.NoRevision))(t)
	must.Do(t, srv.SetVersion("/c/a", math.MaxInt32-1))
	for _, value := range []string{"1", "2", "3", "4"} {
		next, err := c.Set(ctx, "a", []byte(value), revision)
		if err != nil || next <= revision {
			t.Fatalf("revision %d after %d, %v", next, revision, err)
		}
		if _, err := c.Set(ctx, "a", []byte("x"), revision); !errors.Is(err, recipes.ErrBadVersion) {
			t.Errorf("an outdated revision: %v", err)
		}
		revision = next
		for string((<-values).Value) != value {
		}
	}
}

// After a lost reply, a change is not made twice, and it is known which session made it, even if
// another session writes the same value.
func TestACompareAndSetHasOneWinner(t *testing.T) {
	srv := zktest.Embedded(t)
	a, b, ctx := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Bounded(t)
	ca, cb := zktest.ConfigAt(t, a, "/c"), zktest.ConfigAt(t, b, "/c")
	revision := must.Get(ca.Set(ctx, "k", []byte("0"), recipes.NoRevision))(t)
	must.Get(cb.Set(ctx, "other", nil, recipes.NoRevision))(t) // creates the receipts
	for _, before := range []bool{false, true} {
		lost := false
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID != a.ID() || r.Op != zkserver.OpMulti || lost {
				return zkserver.Fault{}
			}
			lost = true
			if before {
				if _, err := cb.Set(ctx, "k", []byte("same"), revision); err != nil {
					t.Error(err)
				}
				return zkserver.Fault{CloseBefore: true}
			}
			return zkserver.Fault{DropReply: true}
		})
		next, err := ca.Set(ctx, "k", []byte("same"), revision)
		if !lost {
			t.Fatal("the case was not met")
		}
		if before {
			if !errors.Is(err, recipes.ErrBadVersion) {
				t.Errorf("another session was first, with the same value: %v", err)
			}
			continue
		}
		must.Do(t, err)
		if _, err := cb.Set(ctx, "k", []byte("same"), revision); !errors.Is(err, recipes.ErrBadVersion) {
			t.Errorf("a second winner: %v", err)
		}
		revision = next
	}
}

// The key is set, but the reply is lost, and the caller gives up while the receipt is read for
// the revision.
func TestARevisionThatIsNotReadAnyMoreIsUnknown(t *testing.T) {
	srv := zktest.Embedded(t)
	s := zktest.Open(t, srv)
	ctx, cancel := context.WithCancel(zktest.Bounded(t))
	defer cancel()
	c := zktest.ConfigAt(t, s, "/c")
	must.Get(c.Set(ctx, "a", nil, recipes.NoRevision))(t) // and the receipt
	lost := false
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		switch {
		case r.Op == zkserver.OpMulti && !lost:
			lost = true
			return zkserver.Fault{DropReply: true}
		case r.Op == zkserver.OpExists && strings.Contains(r.Path, "receipt-"):
			cancel()
			return zkserver.Fault{CloseBefore: true}
		}
		return zkserver.Fault{}
	})
	_, err := c.Set(ctx, "a", []byte("x"), recipes.AnyRevision)
	for _, want := range []error{recipes.ErrUnknownOutcome, context.Canceled} {
		if !errors.Is(err, want) {
			t.Errorf("the error is %v; want %v", err, want)
		}
	}
	if e, err := c.Get(zktest.Bounded(t), "a"); string(e.Value) != "x" {
		t.Errorf("the value is %q, %v", e.Value, err)
	}
}

// A client that may no longer read a key gets no event about it. After the next reconnect the
// read fails. The watch ends then, although it watches other znodes and the caller's context
// is not done.
func TestAWatchEndsWhenReadingFails(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
	c := zktest.ConfigAt(t, s, "/c")
	must.Get(c.Set(ctx, "key", nil, recipes.NoRevision))(t)
	entries := must.Get(c.WatchTree(ctx))(t)
	<-entries
	raw := zktest.Raw(t, srv.Addr())
	must.Get(raw.SetACL("/c/key", zk.WorldACL(zk.PermAll&^zk.PermRead), -1))(t)
	srv.CloseConnection(s.ID())
	for now := range entries {
		t.Errorf("the watch delivers %+v", now)
	}
	must.Report(t, ctx.Err())
}
