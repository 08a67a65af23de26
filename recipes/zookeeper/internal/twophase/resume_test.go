package twophase_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// resumable has the methods of a transaction that resume its coordinator and sites.
type resumable interface {
	recipes.Transaction
	BeginAs(context.Context, []byte, ...string) (string, error)
	CoordinateAs(context.Context, string) (recipes.Decision, error)
	ResumeCoordinator(context.Context, string) error
	ResumeSite(ctx context.Context, site, id string) (recipes.Site, error)
}

func resumableAt(t *testing.T, s recipes.Recipes, path string, v recipes.Variant) resumable {
	t.Helper()
	return must.Get(s.Transaction(path, recipes.TransactionConfig{Variant: v}))(t).(resumable)
}

// eachVariant runs test for each variant, on the in-process server and on a real one.
func eachVariant(t *testing.T, test func(t *testing.T, addr, path string, v recipes.Variant)) {
	zktest.Everywhere(t, func(t *testing.T, addr, path string) {
		for _, v := range recipes.Variants() {
			t.Run(string(v), func(t *testing.T) { test(t, addr, path+"-"+string(v), v) })
		}
	})
}

// A Join without a reply is repeated before DropRest, and the site lives.
func TestASiteThatJoinsAgainIsResumed(t *testing.T) {
	eachVariant(t, func(t *testing.T, addr, path string, v recipes.Variant) {
		ctx, s, other := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr)
		must.Do(t, resumableAt(t, other, path, v).Begin(ctx, nil, "mine"))
		must.Get(resumableAt(t, s, path, v).Join(ctx, "mine"))(t)
		s = zktest.Move(t, addr, s)
		mine := must.Get(resumableAt(t, s, path, v).Join(ctx, "mine"))(t)
		must.Do(t, s.(zktest.Movable).DropRest(ctx))
		must.Do(t, mine.Vote(ctx, recipes.VoteCommit))
		if d, err := resumableAt(t, other, path, v).Coordinate(ctx); err != nil || !d.Commit {
			t.Errorf("decided %+v, %v", d, err)
		}
	})
}

// A znode of another recipe or another session is not resumed, and is kept.
func TestZnodesOfOthersAreNotResumedInATransaction(t *testing.T) {
	eachVariant(t, func(t *testing.T, addr, path string, v recipes.Variant) {
		ctx, s, other := zktest.Bounded(t), zktest.OpenAt(t, addr), zktest.OpenAt(t, addr)
		theirTx := resumableAt(t, other, path, v)
		id := must.Get(theirTx.BeginAs(ctx, nil, "theirs", "nobody's"))(t)
		theirs := must.Get(theirTx.Join(ctx, "theirs"))(t)
		s = zktest.Move(t, addr, s)
		tx := resumableAt(t, s, path, v)
		refused := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		site := func(name, id string) error { _, err := tx.ResumeSite(ctx, name, id); return err }
		refused("another transaction's coordinator", tx.ResumeCoordinator(ctx, "another"), recipes.ErrNoTransaction)
		_, err := tx.CoordinateAs(ctx, "another")
		refused("another transaction's votes", err, recipes.ErrNoTransaction)
		refused("another transaction's site", site("theirs", "another"), recipes.ErrNoTransaction)
		refused("a stranger", site("stranger", id), recipes.ErrUnknownSite)
		if v != recipes.AllWatch {
			refused("another session's coordinator", tx.ResumeCoordinator(ctx, id), recipes.ErrNotHeld)
		}
		if v == recipes.OwnNodes {
			refused("another session's site", site("theirs", id), recipes.ErrNotHeld)
			refused("a site that has not joined", site("nobody's", id), recipes.ErrNotHeld)
		}
		nowhere := resumableAt(t, s, path+"-nowhere", v)
		refused("no transaction's coordinator", nowhere.ResumeCoordinator(ctx, id), recipes.ErrNoTransaction)
		_, err = nowhere.ResumeSite(ctx, "theirs", id)
		refused("no transaction's site", err, recipes.ErrNoTransaction)

		must.Do(t, s.(zktest.Movable).DropRest(ctx))
		must.Report(t, theirs.Vote(ctx, recipes.VoteCommit))
		status := must.Get(theirTx.Status(ctx))(t)
		if status.Coordinated != (v != recipes.AllWatch) {
			t.Error("the coordinator is gone")
		}
	})
}

// A site whose znode is gone is dead, unless there is a decision. If the server denies reading
// that, the error says so.
func TestADecisionThatMayNotBeReadExists(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	s := zktest.Open(t, srv)
	tx := resumableAt(t, s, "/unread", recipes.OwnNodes)
	id := must.Get(tx.BeginAs(ctx, nil, "1"))(t)
	must.Get(tx.Join(ctx, "1"))(t)
	must.Get(tx.Abort(ctx, "no"))(t)
	raw := zktest.Raw(t, srv.Addr())
	must.Do(t, raw.Delete("/unread/s_1", -1))
	must.Get(raw.SetACL("/unread/decision", zk.WorldACL(zk.PermAll&^zk.PermRead), -1))(t)
	tx = resumableAt(t, zktest.Move(t, srv.Addr(), s), "/unread", recipes.OwnNodes)
	if _, err := tx.ResumeSite(ctx, "1", id); !errors.Is(err, recipes.ErrAccessDenied) {
		t.Errorf("got %v", err)
	}
	must.Get(raw.SetACL("/unread/decision", zk.WorldACL(zk.PermAll), -1))(t)
	must.Get(tx.ResumeSite(ctx, "1", id))(t)
}
