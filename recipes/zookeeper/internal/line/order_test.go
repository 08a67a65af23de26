package line_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The tests in this file check the order of two requests where safety depends on it.

// orderOf returns the requests of a session in the order in which the server executes them.
func orderOf(srv *zkserver.Server, s recipes.Session) (requests func() []zkserver.Request) {
	var mu sync.Mutex
	var all []zkserver.Request
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.SessionID == s.ID() {
			all = append(all, r)
		}
		return zkserver.Fault{}
	})
	return func() []zkserver.Request {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func indexOf(all []zkserver.Request, path string, ops ...zkserver.Op) int {
	return slices.IndexFunc(all, func(r zkserver.Request) bool { return r.Path == path && slices.Contains(ops, r.Op) })
}

// As long as the leader's znode exists, a transaction that checks it can create znodes that are
// attached to it. So those are deleted after it.
func TestZnodesOfAHoldAreDeletedAfterIt(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		e := must.Get(s.Election("/e", recipes.ElectionConfig{}))(t)
		l := must.Get(e.Campaign(ctx, nil))(t)
		must.Do(t, l.Acknowledge(ctx, nil))
		ack := ""
		for _, n := range srv.Tree() {
			if strings.HasPrefix(n.Path, "/e/acks/") {
				ack = n.Path
			}
		}
		if ack == "" {
			t.Fatalf("there is no acknowledgement in %v", srv.Tree())
		}
		refused, late := 0, false
		srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			switch {
			case r.Op != zkserver.OpMulti && r.Op != zkserver.OpDelete:
			case r.Path == l.Znode():
				refused++
				f.CloseBefore = refused < 3
			case r.Path == ack:
				late = !zktest.Exists(srv, l.Znode())
			}
			return f
		})
		must.Do(t, l.Resign(ctx))
		if refused != 3 || !late || zktest.Exists(srv, ack) {
			t.Errorf("%s is deleted after %d attempts, and %s not after it", l.Znode(), refused, ack)
		}
	})
}

// A server sends events in the order of the changes. So a waiter that first watches its own place
// is notified of its deletion before a later change of its predecessor.
func TestAWaiterWatchesItsPlaceBeforeItsPredecessor(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		holder := must.Get(zktest.OpenVirtual(t, srv).Lock("/l", recipes.LockConfig{}))(t)
		h := must.Get(holder.Acquire(ctx))(t)
		l := must.Get(s.Lock("/l", recipes.LockConfig{}))(t)
		requests := orderOf(srv, s)
		got := make(chan error, 1)
		go func() {
			h, err := l.Acquire(ctx)
			if err == nil {
				err = h.Release(ctx)
			}
			got <- err
		}()
		synctest.Wait()
		all := requests()
		own := slices.IndexFunc(all, func(r zkserver.Request) bool { return r.Op == zkserver.OpSetWatches })
		ahead := indexOf(all, h.Znode(), zkserver.OpGetData)
		if own < 0 || ahead < own {
			t.Errorf("its place is watched by request %d, and its predecessor by %d: %v", own, ahead, all)
		}
		must.Report(t, errors.Join(h.Release(ctx), <-got))
	})
}
