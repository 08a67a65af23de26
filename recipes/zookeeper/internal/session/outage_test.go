package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A replacement is a case in which one session changes a znode. Another one deletes the znode and
// creates it again, with the same version.
type replacement struct {
	name    string
	prepare func(t *testing.T, ctx context.Context, mine, theirs recipes.Client) (change, replace func() error)
}

func replacements() []replacement {
	key := func(change func(context.Context, recipes.Configuration, recipes.Revision) error) func(*testing.T, context.Context, recipes.Client, recipes.Client) (func() error, func() error) {
		return func(t *testing.T, ctx context.Context, mine, theirs recipes.Client) (func() error, func() error) {
			c, other := zktest.ConfigAt(t, mine, "/c"), zktest.ConfigAt(t, theirs, "/c")
			must.Get(c.Set(ctx, "other", nil, recipes.NoRevision))(t)
			must.Do(t, c.Delete(ctx, "other", recipes.AnyRevision)) // then the session knows the count of deletions
			revision := must.Get(c.Set(ctx, "key", []byte("before"), recipes.NoRevision))(t)
			must.Get(other.Set(ctx, "receipt", nil, recipes.NoRevision))(t)
			return func() error { return change(ctx, c, revision) }, func() error {
				err := other.Delete(ctx, "key", recipes.AnyRevision)
				if err == nil || errors.Is(err, recipes.ErrNoNode) {
					_, err = other.Set(ctx, "key", []byte("theirs"), recipes.NoRevision)
				}
				return err
			}
		}
	}
	return []replacement{
		{"a key is set", key(func(ctx context.Context, c recipes.Configuration, r recipes.Revision) error {
			_, err := c.Set(ctx, "key", []byte("mine"), r)
			return err
		})},
		{"a key is deleted", key(func(ctx context.Context, c recipes.Configuration, r recipes.Revision) error {
			return c.Delete(ctx, "key", r)
		})},
		{"a name is unregistered", func(t *testing.T, ctx context.Context, mine, theirs recipes.Client) (func() error, func() error) {
			n, other := must.Get(mine.Names("/c"))(t), must.Get(theirs.Names("/c"))(t)
			must.Do(t, errors.Join(n.RegisterPersistent(ctx, "other", nil), n.Unregister(ctx, "other", 0))) // as above
			must.Do(t, errors.Join(n.RegisterPersistent(ctx, "key", nil), other.RegisterPersistent(ctx, "receipt", nil)))
			token := must.Get(n.Lookup(ctx, "key"))(t).Token
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

// The connection is lost between the read and the write, or before the reply. Another client
// replaces the znode during the outage. The version is the same, so only another read
// distinguishes the two znodes.
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
				srv := zktest.Embedded(t)
				mine, theirs, ctx := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Bounded(t)
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
						must.Report(t, replace())
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
				if e, err := zktest.ConfigAt(t, theirs, "/c").Get(ctx, "key"); string(e.Value) != "theirs" {
					t.Errorf("what another client has made is %q, %v", e.Value, err)
				}
			})
		}
	}
}
