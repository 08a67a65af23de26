package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A replaced is a znode that is changed by one session. Another one deletes it and creates
// it again, with as many changes as it had.
type replaced struct {
	name    string
	prepare func(t *testing.T, ctx context.Context, mine, theirs recipes.Session) (change, replace func() error)
}

func replacements() []replaced {
	key := func(change func(context.Context, recipes.Configuration, recipes.Revision) error) func(*testing.T, context.Context, recipes.Session, recipes.Session) (func() error, func() error) {
		return func(t *testing.T, ctx context.Context, mine, theirs recipes.Session) (func() error, func() error) {
			c, other := configAt(t, mine, "/c"), configAt(t, theirs, "/c")
			revision := must[recipes.Revision](t)(c.Set(ctx, "key", []byte("before"), recipes.NoRevision))
			must[recipes.Revision](t)(other.Set(ctx, "receipt", nil, recipes.NoRevision))
			return func() error { return change(ctx, c, revision) }, func() error {
				err := other.Delete(ctx, "key", recipes.AnyRevision)
				if err == nil || errors.Is(err, recipes.ErrNoNode) {
					_, err = other.Set(ctx, "key", []byte("theirs"), recipes.NoRevision)
				}
				return err
			}
		}
	}
	return []replaced{
		{"a key is set", key(func(ctx context.Context, c recipes.Configuration, r recipes.Revision) error {
			_, err := c.Set(ctx, "key", []byte("mine"), r)
			return err
		})},
		{"a key is deleted", key(func(ctx context.Context, c recipes.Configuration, r recipes.Revision) error {
			return c.Delete(ctx, "key", r)
		})},
		{"a name is unregistered", func(t *testing.T, ctx context.Context, mine, theirs recipes.Session) (func() error, func() error) {
			n, other := must[recipes.Names](t)(mine.Names("/c")), must[recipes.Names](t)(theirs.Names("/c"))
			if err := errors.Join(n.RegisterPersistent(ctx, "key", nil), other.RegisterPersistent(ctx, "receipt", nil)); err != nil {
				t.Fatal(err)
			}
			token := must[recipes.Record](t)(n.Lookup(ctx, "key")).Token
			return func() error { return n.Unregister(ctx, "key", token) }, func() error {
				err := other.Unregister(ctx, "key", 0)
				if err == nil || errors.Is(err, recipes.ErrNoNode) {
					err = other.RegisterPersistent(ctx, "key", []byte("theirs"))
				}
				return err
			}
		}},
	}
}

// Between the read and the write, or with the reply, the connection is lost, and another
// client replaces the znode before it is back. Its version is the same, so only another read
// distinguishes the two.
func TestAfterAnOutageNoChangeIsMadeToASuccessor(t *testing.T) {
	for _, r := range replacements() {
		for cut, fault := range map[string]struct {
			at    zkserver.Op
			fault zkserver.Fault
			want  error
		}{
			"before the write is sent": {zkserver.OpExists, zkserver.Fault{CloseAfter: true}, recipes.ErrBadVersion},
			"and the write with it":    {zkserver.OpMulti, zkserver.Fault{CloseBefore: true}, recipes.ErrBadVersion},
			"and the reply with it":    {zkserver.OpMulti, zkserver.Fault{DropReply: true}, nil},
		} {
			t.Run(fmt.Sprintf("%s, lost %s", r.name, cut), func(t *testing.T) {
				srv := embedded(t)
				mine, theirs, ctx := open(t, srv), open(t, srv), bounded(t)
				change, replace := r.prepare(t, ctx, mine, theirs)
				var lost, done atomic.Bool
				srv.SetFault(func(q zkserver.Request) zkserver.Fault {
					switch {
					case q.SessionID != mine.ID() || done.Load() || q.Op == zkserver.OpPing:
					case !lost.Load() && q.Op == fault.at:
						lost.Store(true)
						return fault.fault
					case lost.Load(): // the first request after the outage
						done.Store(true)
						if err := replace(); err != nil {
							t.Error(err)
						}
					}
					return zkserver.Fault{}
				})
				err := change()
				if !done.Load() {
					t.Fatal("the case was not met")
				}
				if !errors.Is(err, fault.want) {
					t.Errorf("%v; want %v", err, fault.want)
				}
				if e, err := configAt(t, theirs, "/c").Get(ctx, "key"); string(e.Value) != "theirs" {
					t.Errorf("what another client has made is %q, %v", e.Value, err)
				}
			})
		}
	}
}

// A counter has the receipt below its znode. A client that replaces the znode deletes that
// too, so nothing is added to the successor.
func TestAfterAnOutageNothingIsAddedToASuccessor(t *testing.T) {
	srv := embedded(t)
	mine, ctx := open(t, srv), bounded(t)
	counter := must[recipes.Counter](t)(mine.Counter("/c", recipes.CounterConfig{}))
	for range 3 {
		must[int64](t)(counter.Add(ctx, 1))
	}
	raw, _, err := zk.Connect([]string{srv.Addr()}, deadline, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	replace := func() {
		_, before, err := raw.Get("/c")
		if err != nil {
			t.Error(err)
			return
		}
		removeAll(t, raw, "/c")
		if _, err := raw.Create("/c", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Error(err)
		}
		for range before.Version {
			if _, err := raw.Set("/c", []byte("100"), -1); err != nil {
				t.Error(err)
			}
		}
	}
	var lost, done atomic.Bool
	srv.SetFault(func(q zkserver.Request) zkserver.Fault {
		switch {
		case q.SessionID != mine.ID() || done.Load() || q.Op == zkserver.OpPing:
		case !lost.Load() && q.Op == zkserver.OpMulti:
			lost.Store(true)
			return zkserver.Fault{CloseBefore: true}
		case lost.Load(): // the first request after the outage
			done.Store(true)
			replace()
		}
		return zkserver.Fault{}
	})
	if _, err := counter.Add(ctx, 1); !errors.Is(err, recipes.ErrUnknownOutcome) || !done.Load() {
		t.Errorf("%v; want ErrUnknownOutcome (replaced: %v)", err, done.Load())
	}
	if now := must[int64](t)(counter.Get(ctx)); now != 100 {
		t.Errorf("the successor is %d; want 100", now)
	}
}
