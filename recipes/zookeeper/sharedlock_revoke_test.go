package zookeeper_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Who revokes by force waits for the whole grace, whatever happens in it, or else until
// the holder has gone and no moment longer. It reads once when it begins to wait and
// once for each time that it is woken.
func TestAForcedRevocationWaitsForTheGraceOrTheEnd(t *testing.T) {
	const grace, early = time.Minute, 20 * time.Second
	for name, test := range map[string]struct {
		act   func(ctx context.Context, srv *zkserver.Server, h recipes.SharedHold, revoker recipes.Client) error // after early
		takes time.Duration
		want  cost // of the revocation and of act together
	}{
		"the holder does not listen": {
			takes: grace, want: cost{writes: 2, reads: 3, events: 1},
		},
		"the holder releases": {
			act: func(ctx context.Context, _ *zkserver.Server, h recipes.SharedHold, _ recipes.Client) error {
				return h.Release(ctx)
			},
			takes: early, want: cost{writes: 1, reads: 3, events: 1},
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
			takes: early, want: cost{writes: 1, reads: 3, events: 1},
		},
		"the holder's data are written": { // and still say that it was asked
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
			onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
				holder := must.Get(openVirtual(t, srv).SharedLock("/forced", recipes.SharedLockConfig{Revocable: true, Grace: grace}))(t)
				l := must.Get(s.SharedLock("/forced", recipes.SharedLockConfig{}))(t)
				h := must.Get(holder.AcquireWrite(ctx))(t)
				synctest.Wait()
				if test.act != nil {
					time.AfterFunc(early, func() {
						if err := test.act(ctx, srv, h, s); err != nil {
							t.Error(err)
						}
					})
				}
				begun := time.Now()
				spent := func() cost {
					stats := must.Get(s.Stats(ctx))(t)
					return cost{stats.Writes, stats.Reads, stats.WatchEvents}
				}
				before := spent()
				func() {
					if err := l.RevokeForced(ctx, h.Znode()); err != nil {
						t.Error(err)
					}
					if took := time.Since(begun); took != test.takes {
						t.Errorf("it took %v; want %v", took, test.takes)
					}
					synctest.Wait()
				}()
				after := spent()
				got := cost{after.writes - before.writes, after.reads - before.reads, after.events - before.events}
				if test.want != (cost{}) && got != test.want {
					t.Errorf("it cost %v; want %v", got, test.want)
				}
				if exists(srv, h.Znode()) {
					t.Error("the znode is still there")
				}
			})
		})
	}
}
