package rwlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A holder that takes the request back at the last moment keeps the lock: the revoker deletes
// only the version that it has read.
func TestAForcedRevocationSparesAHolderThatTakesTheRequestBack(t *testing.T) {
	const grace = time.Minute
	for name, at := range map[string]func(s recipes.Client) (holds func(context.Context) (recipes.Grant, error), revoke func(context.Context, string) error){
		"shared lock": func(s recipes.Client) (func(context.Context) (recipes.Grant, error), func(context.Context, string) error) {
			l, _ := s.SharedLock("/l", recipes.SharedLockConfig{Revocable: true, Grace: grace})
			return func(ctx context.Context) (recipes.Grant, error) { return l.AcquireWrite(ctx) }, l.RevokeForced
		},
		"priority lock": func(s recipes.Client) (func(context.Context) (recipes.Grant, error), func(context.Context, string) error) {
			l, _ := s.PriorityLock("/l", recipes.PriorityLockConfig{Revocable: true, Grace: grace})
			return func(ctx context.Context) (recipes.Grant, error) { return l.AcquireWrite(ctx) }, l.RevokeForced
		},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
				holds, _ := at(zktest.OpenVirtual(t, srv))
				_, revoke := at(s)
				h := must.Get(holds(ctx))(t)
				var before []byte
				for _, n := range srv.Tree() {
					if n.Path == h.Znode() {
						before = n.Data
					}
				}
				met := zktest.Between(srv, s, zktest.Nth(2, func(r zkserver.Request) bool { // the first write asks
					return (r.Op == zkserver.OpMulti || r.Op == zkserver.OpDelete) && strings.HasPrefix(r.Path, h.Znode())
				}), func() {
					must.Report(t, h.Write(ctx, recipes.Set(h.Znode(), before, recipes.AnyVersion)))
				})
				if err := revoke(ctx, h.Znode()); !errors.Is(err, recipes.ErrBadVersion) {
					t.Errorf("the revocation: %v", err)
				}
				if !met() {
					t.Error("the case was not met")
				}
				if err := h.Write(ctx); err != nil {
					t.Errorf("the hold: %v", err)
				}
			})
		})
	}
}

// A forced revocation waits for the whole grace, or until the holder is gone. Other events do
// not end the wait. It reads once when it begins to wait, and once for each wakeup.
func TestAForcedRevocationWaitsForTheGraceOrTheEnd(t *testing.T) {
	const grace, early = time.Minute, 20 * time.Second
	for name, test := range map[string]struct {
		act   func(ctx context.Context, srv *zkserver.Server, h recipes.SharedHold, revoker recipes.Client) error // after early
		takes time.Duration
		want  zktest.Cost // of the revocation and of act together
	}{
		"the holder does not listen": {
			takes: grace, want: zktest.Cost{Writes: 2, Reads: 3, Events: 1},
		},
		"the holder releases": {
			act: func(ctx context.Context, _ *zkserver.Server, h recipes.SharedHold, _ recipes.Client) error {
				return h.Release(ctx)
			},
			takes: early, want: zktest.Cost{Writes: 1, Reads: 3, Events: 1},
		},
		"the holder's session ends": {
			act: func(_ context.Context, srv *zkserver.Server, h recipes.SharedHold, _ recipes.Client) error {
				for _, n := range srv.Tree() {
					if n.Path == h.Znode() {
						srv.ExpireSession(n.Stat.EphemeralOwner)
					}
				}
				return nil
			},
			takes: early, want: zktest.Cost{Writes: 1, Reads: 3, Events: 1},
		},
		"the holder's data are written": { // and still ask it to give way
			act: func(ctx context.Context, srv *zkserver.Server, h recipes.SharedHold, _ recipes.Client) error {
				for _, n := range srv.Tree() {
					if n.Path == h.Znode() {
						return h.Write(ctx, recipes.Set(h.Znode(), n.Data, recipes.AnyVersion))
					}
				}
				return errors.New("there is no such znode")
			},
			takes: grace,
		},
		"the connection is cut": {
			act: func(_ context.Context, srv *zkserver.Server, _ recipes.SharedHold, revoker recipes.Client) error {
				srv.CloseConnection(revoker.ID())
				return nil
			},
			takes: grace,
		},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
				holder := must.Get(zktest.OpenVirtual(t, srv).SharedLock("/forced", recipes.SharedLockConfig{Revocable: true, Grace: grace}))(t)
				l := must.Get(s.SharedLock("/forced", recipes.SharedLockConfig{}))(t)
				h := must.Get(holder.AcquireWrite(ctx))(t)
				synctest.Wait()
				if test.act != nil {
					time.AfterFunc(early, func() {
						must.Report(t, test.act(ctx, srv, h, s))
					})
				}
				begun := time.Now()
				before := must.Get(s.Stats(ctx))(t)
				must.Report(t, l.RevokeForced(ctx, h.Znode()))
				if took := time.Since(begun); took != test.takes {
					t.Errorf("the revocation took %v; want %v", took, test.takes)
				}
				synctest.Wait()
				after := must.Get(s.Stats(ctx))(t)
				got := zktest.Cost{
					Writes: after.Writes - before.Writes, Reads: after.Reads - before.Reads, Events: after.WatchEvents - before.WatchEvents,
				}
				if test.want != (zktest.Cost{}) && got != test.want {
					t.Errorf("the revocation cost %v; want %v", got, test.want)
				}
				if zktest.Exists(srv, h.Znode()) {
					t.Error("the znode still exists")
				}
			})
		})
	}
}
