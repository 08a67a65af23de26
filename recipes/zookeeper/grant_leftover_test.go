package zookeeper_test

import (
	"context"
	"errors"
	gopath "path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// endingGrant is a grant that ends, on virtual time.
type endingGrant struct {
	*testing.T
	ctx      context.Context
	srv      *zkserver.Server
	s, other recipes.Client
	grant    recipes.Grant
	giveBack func(context.Context) error
}

func (g *endingGrant) removed() {
	g.Helper()
	must.Report(g, zktest.BarrierAt(g.T, g.other, g.grant.Znode()).Remove(g.ctx))
}

// ends are the ways in which a grant ends while its session lives.
var ends = map[string]struct {
	end    func(*endingGrant) error
	reason error // end returns an error that matches it; nil: end succeeds
}{
	"given back": {func(g *endingGrant) error { return g.giveBack(g.ctx) }, nil},
	"given back after a while": {func(g *endingGrant) error {
		before := g.srv.Counters()
		time.Sleep(g.s.Timeout()) // the session's deadline counts from the latest contact with the leader
		if n := g.srv.Counters().Sub(before).Requests[zkserver.OpSync]; n < 5 {
			g.Errorf("%d syncs within a timeout while the session holds a grant", n)
		}
		return g.giveBack(g.ctx)
	}, nil},
	"watched, written, given back": {func(g *endingGrant) error {
		done := g.grant.Done()
		must.Report(g, g.grant.Write(g.ctx))
		synctest.Wait()
		err := g.giveBack(g.ctx)
		<-done
		return err
	}, nil},
	"given back twice": {func(g *endingGrant) error {
		return errors.Join(g.giveBack(g.ctx), g.giveBack(g.ctx))
	}, nil},
	"deleted by another": {func(g *endingGrant) error {
		done := g.grant.Done()
		must.Report(g, g.grant.Write(g.ctx))
		synctest.Wait()
		g.removed()
		<-done
		if err := g.grant.Write(g.ctx); !errors.Is(err, recipes.ErrRemoved) {
			g.Errorf("a write then: %v", err)
		}
		return g.giveBack(g.ctx)
	}, recipes.ErrRemoved},
	"deleted by another, and not watched": {func(g *endingGrant) error {
		g.removed()
		return g.giveBack(g.ctx)
	}, recipes.ErrRemoved},
	"deleted by another before a write": {func(g *endingGrant) error {
		g.removed()
		if err := g.grant.Write(g.ctx); !errors.Is(err, recipes.ErrRemoved) {
			g.Errorf("the write: %v", err)
		}
		return g.giveBack(g.ctx)
	}, recipes.ErrRemoved},
	"given back while a write is under way": {func(g *endingGrant) error {
		proceed := make(chan struct{})
		var once sync.Once
		g.srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			if r.SessionID == g.s.ID() {
				once.Do(func() { f.Hold = proceed })
			}
			return f
		})
		written, given := make(chan error, 1), make(chan error, 1)
		go func() { written <- g.grant.Write(g.ctx) }()
		synctest.Wait()
		go func() { given <- g.giveBack(g.ctx) }()
		synctest.Wait()
		close(proceed)
		if err := <-written; err != nil && !errors.Is(err, recipes.ErrNotHeld) {
			g.Errorf("the write: %v", err)
		}
		return <-given
	}, nil},
}

// However a grant ends, it leaves nothing at the server. Its session holds nothing then, and
// so sends the leader no more requests.
func TestNothingIsLeftOfAGrantThatHasEnded(t *testing.T) {
	for _, w := range ways(held) {
		for name, e := range ends {
			t.Run(w.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
					g := &endingGrant{T: t, ctx: ctx, srv: srv, s: s, other: zktest.OpenVirtual(t, srv)}
					g.grant = must.Get(w.at(t, s, "/left").Get(ctx))(t)
					g.giveBack = func(ctx context.Context) error { return w.GiveBack(ctx, g.grant) }
					if err := e.end(g); e.reason == nil && err != nil || !errors.Is(err, e.reason) {
						t.Errorf("the end returned %v, want %v", err, e.reason)
					}
					srv.SetFault(nil)
					if err := g.grant.Err(); !errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrReleased) {
						t.Errorf("the grant has ended, but Err is %v", err)
					}
					synctest.Wait()
					for _, n := range srv.Tree() {
						if n.Stat.EphemeralOwner == s.ID() && !strings.Contains(n.Path, "receipt-") {
							t.Errorf("%s is left", n.Path)
						}
					}
					before := srv.Counters()
					time.Sleep(time.Minute)
					if d := srv.Counters().Sub(before); d.Requests[zkserver.OpSync] != 0 || d.Reads != 0 || d.Writes != 0 {
						t.Errorf("in a minute the session has sent %d syncs, %d reads and %d writes", d.Requests[zkserver.OpSync], d.Reads, d.Writes)
					}
				})
			})
		}
	}
}

// A release that the server has refused may be repeated, and deletes the znode then.
func TestARefusedReleaseIsRepeated(t *testing.T) {
	eachWay(t, held, func(t *testing.T, addr, path string, w way) {
		ctx, operator := zktest.Bounded(t), zktest.Raw(t, addr)
		must.Get(operator.Create(path, nil, 0, zk.WorldACL(zk.PermAll)))(t) // a wait queue of ours lets no other client change its ACL
		grant := must.Get(w.at(t, zktest.OpenAt(t, addr), path).Get(ctx))(t)
		if _, once := grant.(recipes.Delivery); once { // a delivery returns its first result
			return
		}
		parent := gopath.Dir(grant.Znode())
		must.Get(operator.SetACL(parent, zk.WorldACL(noDelete), -1))(t)
		if err := w.GiveBack(ctx, grant); !errors.Is(err, recipes.ErrAccessDenied) {
			t.Errorf("without the permission: %v", err)
		}
		must.Get(operator.SetACL(parent, zk.WorldACL(zk.PermAll), -1))(t)
		must.Report(t, w.GiveBack(ctx, grant))
		if there, _, err := operator.Exists(grant.Znode()); there || err != nil {
			t.Errorf("the znode is left: %t, %v", there, err)
		}
	})
}
