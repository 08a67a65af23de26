package config_test

import (
	"errors"
	"math"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
