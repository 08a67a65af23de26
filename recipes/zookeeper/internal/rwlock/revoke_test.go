package rwlock_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A forced revocation waits for the whole grace, or until the holder is gone. Other events do
// not end the wait. It reads once when it begins to wait, and once for each wakeup.
func TestAForcedRevocationWaitsForTheGraceOrTheEnd(t *testing.T) {
	const grace, early = time.Minute, 20 * time.Second
	for name, test := range map[string]struct {
		act   func(ctx context.Context, srv *zkserver.Server, h recipes.SharedHold, revoker recipes.Client) error // after early
		limit time.Duration                                                                                       // the timeout of the call, if it has one
		takes time.Duration
		fails error       // the call's error, with which the hold survives
		want  zktest.Cost // the cost of the revocation and of act together
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
				tree := srv.Tree()
				at := slices.IndexFunc(tree, func(n zkserver.Node) bool { return n.Path == h.Znode() })
				srv.ExpireSession(tree[at].Stat.EphemeralOwner)
				return nil
			},
			takes: early, want: zktest.Cost{Writes: 1, Reads: 3, Events: 1},
		},
		"the holder's data are written": { // the new data still ask it to give way
			act: func(ctx context.Context, srv *zkserver.Server, h recipes.SharedHold, _ recipes.Client) error {
				tree := srv.Tree()
				at := slices.IndexFunc(tree, func(n zkserver.Node) bool { return n.Path == h.Znode() })
				return h.Write(ctx, recipes.Set(h.Znode(), tree[at].Data, recipes.AnyVersion))
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
		"the context of the call ends": {limit: early, takes: early, fails: context.DeadlineExceeded},
		"the request is overwritten": {
			act: func(ctx context.Context, _ *zkserver.Server, h recipes.SharedHold, _ recipes.Client) error {
				return h.Write(ctx, recipes.Set(h.Znode(), []byte("never mind"), recipes.AnyVersion))
			},
			takes: grace, fails: recipes.ErrBadVersion,
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
				call, cancel := context.WithTimeout(ctx, cmp.Or(test.limit, time.Hour))
				defer cancel()
				if err := l.RevokeForced(call, h.Znode()); !errors.Is(err, test.fails) {
					t.Errorf("the revocation: %v; want %v", err, test.fails)
				}
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
				time.Sleep(grace) // a call that has failed ends no hold later
				if got, want := zktest.Exists(srv, h.Znode()), test.fails != nil; got != want {
					t.Errorf("the znode exists: %v; want %v", got, want)
				}
			})
		})
	}
}

// Readers that wait behind a writer hold nothing, however many there are.
func TestReadersBehindAWriterDoNotHold(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		l := must.Get(s.SharedLock("/shared", recipes.SharedLockConfig{}))(t)
		reader := must.Get(l.AcquireRead(ctx))(t)
		got := make(chan recipes.SharedHold, 4)
		enter := func(acquire func(context.Context) (recipes.SharedHold, error)) {
			go func() { got <- must.Get(acquire(ctx))(t) }()
			synctest.Wait()
		}
		enter(l.AcquireRead)
		enter(l.AcquireWrite)
		enter(l.AcquireRead)
		enter(l.AcquireRead)
		for i, c := range must.Get(l.Contenders(ctx))(t) {
			if c.Holds != (i < 2) {
				t.Errorf("contender %d, %s, holds: %v; want the first two readers", i, c.Znode, c.Holds)
			}
		}
		for hold := reader; ; hold = <-got {
			must.Do(t, hold.Release(ctx))
			synctest.Wait()
			if line := must.Get(l.Contenders(ctx))(t); len(line) == 0 {
				return
			}
		}
	})
}

// Readers are granted as soon as the server has the mark, before the answer arrives.
func TestAWriterReadsBeforeItsMarkIsWritten(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		h := must.Get(must.Get(s.SharedLock("/l", recipes.SharedLockConfig{}))(t).AcquireWrite(ctx))(t)
		met := zktest.Between(srv, s, zktest.Op(zkserver.OpMulti), func() {
			if h.Mode() != recipes.Reading {
				t.Error("it still writes")
			}
		})
		if must.Do(t, h.Downgrade(ctx)); !met() {
			t.Error("no mark was written")
		}
	})
}

// A hold that was revoked by force costs nothing more, even if its application neither watches nor
// releases it. The path is then empty. ZooKeeper deletes it, because it is a container. On Keeper, an
// operator does.
func TestARevokedHoldCostsNothingUntilItsRelease(t *testing.T) {
	for _, like := range append(zkserver.Keepers(), zkserver.Release38) {
		zktest.Bubble(t, func(t *testing.T) {
			srv, ctx := zkserver.New(zkserver.Config{Like: like}), t.Context()
			t.Cleanup(func() { srv.Close() })
			holder, operator := zktest.OpenVirtual(t, srv), zktest.OpenVirtual(t, srv)
			l := must.Get(holder.SharedLock("/forced", recipes.SharedLockConfig{Revocable: true, Grace: time.Second}))(t)
			h := must.Get(l.AcquireRead(ctx))(t)
			time.Sleep(holder.Timeout()) // the path was inspected
			must.Do(t, must.Get(operator.SharedLock("/forced", recipes.SharedLockConfig{}))(t).RevokeForced(ctx, h.Znode()))
			must.Do(t, zktest.Acquire(t, operator).Write(ctx, recipes.Delete("/forced", recipes.AnyVersion)))
			time.Sleep(holder.Timeout()) // the next confirmation ends the hold
			before := must.Get(holder.Stats(ctx))(t)
			time.Sleep(10 * holder.Timeout())
			after := must.Get(holder.Stats(ctx))(t)
			for kind, n := range after.ByKind {
				if n -= before.ByKind[kind]; n > 0 && kind != "ping" {
					t.Errorf("%v: %d requests %s", like, n, kind)
				}
			}
			if n := after.WatchEvents - before.WatchEvents; n > 0 {
				t.Errorf("%v: %d watch events", like, n)
			}
			if err := h.Release(ctx); !errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("%v: released with %v", like, err)
			}
		})
	}
}
