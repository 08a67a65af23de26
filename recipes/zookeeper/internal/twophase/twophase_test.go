package twophase_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// measure runs a whole transaction of n sites, each in its own session. It returns the costs
// from Begin until every site has the decision. The schedule is the most expensive one: all
// sites wait before the first vote, one votes at a time, and all that can decide try to.
func measure(t *testing.T, v recipes.Variant, n int) zktest.Cost {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	coordinator := transactionOf(t, zktest.Open(t, srv), v)
	var sessions []recipes.Client
	var names []string
	for i := range n {
		sessions, names = append(sessions, zktest.Open(t, srv)), append(names, fmt.Sprint(i))
	}
	deciders := 1
	if v == recipes.AllWatch {
		deciders = n
	}
	// The transactions that decide come last. Hold them until all have arrived.
	var mu sync.Mutex
	arrived, release := 0, make(chan struct{})
	decisive := false
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		mu.Lock()
		defer mu.Unlock()
		if !decisive || r.Op != zkserver.OpMulti {
			return zkserver.Fault{}
		}
		arrived++
		if arrived == 1+deciders { // the first request is the last vote
			close(release)
		}
		if arrived == 1 {
			return zkserver.Fault{}
		}
		return zkserver.Fault{Hold: release}
	})

	// Usually the parent of the path exists already.
	must.Do(t, zktest.BarrierAt(t, sessions[0], "/app").Set(ctx, nil))
	return zktest.CostOf(srv, func() {
		must.Do(t, coordinator.Begin(ctx, []byte("payload"), names...))
		for slices.ContainsFunc(srv.Tree(), func(n zkserver.Node) bool { return strings.Contains(n.Path, "-begun-") }) {
		}
		var sites []recipes.Site
		for i, s := range sessions {
			sites = append(sites, must.Get(transactionOf(t, s, "").Join(ctx, names[i]))(t))
		}
		var wg sync.WaitGroup
		decides := func(wait func(context.Context) (recipes.Decision, error)) {
			wg.Go(func() {
				if d, err := wait(ctx); err != nil || !d.Commit {
					t.Errorf("decided %+v, %v", d, err)
				}
			})
		}
		watches := 0
		for _, s := range sites {
			decides(s.Wait)
			if v == recipes.AllWatch {
				watches += 1 + n
			} else {
				watches += 2
			}
		}
		if v != recipes.AllWatch {
			decides(coordinator.Coordinate)
			watches += 1 + n
		}
		each := deciders // the watches that a vote triggers
		if v == recipes.OwnNodes {
			each = 0 // the watches remain, because a site can die after its vote
		}
		for i, s := range sites {
			zktest.AwaitWatches(ctx, t, srv, watches)
			if i == n-1 {
				mu.Lock()
				decisive = true
				mu.Unlock()
			}
			must.Do(t, s.Vote(ctx, recipes.VoteCommit))
			watches -= each
		}
		wg.Wait()
	})
}

// The table of the package comment has the measured numbers, and these follow the formula.
func TestTheMessagesOfATransaction(t *testing.T) {
	var table strings.Builder
	for _, v := range recipes.Variants() {
		for _, n := range []int{2, 4, 8, 16} {
			got := measure(t, v, n)
			want := formula(v, int64(n))
			if got != want {
				t.Errorf("%s, %d sites: %v; want %v", v, n, got, want)
			}
			fmt.Fprintf(&table, "//\t%-17s %5d %8d %8d %8d\n", v, n, got.Writes, got.Reads, got.Events)
		}
	}
	doc := must.Get(os.ReadFile("doc.go"))(t)
	if !strings.Contains(string(doc), table.String()) {
		t.Errorf("internal/twophase/doc.go does not hold the table\n%s", table.String())
	}
}

// formula returns the costs by the formulas of the package comment.
func formula(v recipes.Variant, n int64) zktest.Cost {
	switch v {
	case recipes.AllWatch:
		return zktest.Cost{Writes: 2 + n + n, Reads: 2*n + n*(1+n) + n*n + (n - 1), Events: n*n + n}
	case recipes.OwnNodes:
		return zktest.Cost{Writes: 2 + n + n + 1, Reads: 2*n + 2*n + 1 + 1 + 1 + n + n + n, Events: n + n + 1}
	}
	return zktest.Cost{Writes: 2 + n + 1, Reads: 2*n + 2*n + 1 + 1 + n + n + n, Events: n + n + 1}
}

// Another program keeps a znode below the transaction, so the transaction cannot be deleted. The
// last site records that it is done, and returns that error.
func TestATransactionThatAnotherKeepsSomethingBelow(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		session := s.Session()
		tx := must.Get(session.Transaction(s.Path, recipes.TransactionConfig{}))(s.T)
		must.Do(s, tx.Begin(s.Ctx, nil, "1"))
		for _, path := range []string{s.Path + "/strange", s.Path + "/strange/child"} {
			must.Get(s.Raw.Create(path, nil, 0, zk.WorldACL(zk.PermAll)))(s)
		}
		site := must.Get(tx.Join(s.Ctx, "1"))(s.T)
		must.Get(tx.Abort(s.Ctx, ""))(s.T)
		for _, end := range []func(context.Context) error{site.Done, tx.Forget} {
			if err := end(s.Ctx); !errors.Is(err, recipes.ErrNotEmpty) {
				s.Error(err)
			}
		}
		must.Do(s, s.Raw.Delete(s.Path+"/strange/child", -1))
		before := must.Get(session.Stats(s.Ctx))(s.T).ByKind["sync"]
		if err := tx.Forget(s.Ctx); err != nil || s.Exists(s.Path) {
			s.Errorf("Forget after the child was deleted: %v", err)
		}
		if n := must.Get(session.Stats(s.Ctx))(s.T).ByKind["sync"] - before; n != 0 {
			s.Errorf("all sites are done, but Forget sent %d syncs", n)
		}
	})
}

func transactionOf(t *testing.T, s recipes.Recipes, v recipes.Variant) recipes.Transaction {
	t.Helper()
	return must.Get(s.Transaction("/app/Tx", recipes.TransactionConfig{Variant: v}))(t)
}
