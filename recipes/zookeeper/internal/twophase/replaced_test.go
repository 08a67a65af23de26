package twophase_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A site becomes coordinator after the first one has died, and gives up waiting. Then it waits
// again, or another site waits. Either way the votes are counted.
func TestACoordinatorsReplacementEndsWithItsWait(t *testing.T) {
	for name, waitsAgain := range map[string]int{"by itself, later": 0, "by another": 1} {
		for _, v := range []recipes.Variant{recipes.CoordinatorOnly, recipes.OwnNodes} {
			t.Run(string(v)+"/"+name, func(t *testing.T) {
				zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
					dying := s.Session()
					transaction := func(session recipes.Client) recipes.Transaction {
						return must.Get(session.Transaction(s.Path, recipes.TransactionConfig{Variant: v}))(t)
					}
					must.Do(t, transaction(dying).Begin(s.Ctx, nil, "1", "2"))
					var sites []recipes.Site
					for _, site := range []string{"1", "2"} {
						sites = append(sites, must.Get(transaction(s.Session()).Join(s.Ctx, site))(t))
					}
					must.Do(t, dying.Close(s.Ctx))
					zktest.AwaitWatches(s.Ctx, t, srv, 0)
					ctx, cancel := context.WithCancel(s.Ctx)
					waited := make(chan error, 1)
					go func() { _, err := sites[0].Wait(ctx); waited <- err }()
					zktest.AwaitWatches(s.Ctx, t, srv, 3) // on the decision, and on the two votes, because the site counts now
					cancel()
					if err := <-waited; !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
					for _, site := range sites {
						must.Do(t, site.Vote(s.Ctx, recipes.VoteCommit))
					}
					if d, err := sites[waitsAgain].Wait(s.Ctx); err != nil || !d.Commit {
						t.Errorf("decided %+v, %v", d, err)
					}
				})
			})
		}
	}
}

// The coordinator gives up counting for good, although its session lives. A site that waits for
// it counts instead.
func TestACoordinatorThatGivesUpIsReplaced(t *testing.T) {
	for _, v := range []recipes.Variant{recipes.CoordinatorOnly, recipes.OwnNodes} {
		t.Run(string(v), func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				tx := must.Get(s.Session().Transaction(s.Path, recipes.TransactionConfig{Variant: v}))(t)
				must.Do(t, tx.Begin(s.Ctx, nil, "1"))
				site := must.Get(must.Get(s.Session().Transaction(s.Path, recipes.TransactionConfig{}))(t).Join(s.Ctx, "1"))(t)
				decided := make(chan error, 1)
				go func() { _, err := site.Wait(s.Ctx); decided <- err }()
				zktest.AwaitWatches(s.Ctx, t, srv, 2) // on the decision, and on the coordinator
				ctx, cancel := context.WithCancel(s.Ctx)
				counted := make(chan error, 1)
				go func() { _, err := tx.Coordinate(ctx); counted <- err }()
				zktest.AwaitWatches(s.Ctx, t, srv, 4) // two more: on the decision, and on the vote
				cancel()
				if err := <-counted; !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				must.Do(t, site.Vote(s.Ctx, recipes.VoteCommit))
				must.Report(t, <-decided)
			})
		})
	}
}

// commits has the only site of the transaction vote, and checks that it gets a commit.
func commits(t *testing.T, s *zktest.Scene, joins recipes.Recipes) {
	t.Helper()
	site := must.Get(must.Get(joins.Transaction(s.Path, recipes.TransactionConfig{}))(t).Join(s.Ctx, "1"))(t)
	must.Do(t, site.Vote(s.Ctx, recipes.VoteCommit))
	if d, err := site.Wait(s.Ctx); err != nil || !d.Commit {
		t.Errorf("decided %+v, %v", d, err)
	}
}

// The context of the coordinator ends before it has read which votes to count.
func TestACoordinatorWhoseTimeIsUpIsReplaced(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		began, joins := s.Session(), s.Session()
		tx := must.Get(began.Transaction(s.Path, recipes.TransactionConfig{}))(t)
		must.Do(t, tx.Begin(s.Ctx, nil, "1"))
		ctx, cancel := context.WithCancel(s.Ctx)
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == began.ID() && r.Op == zkserver.OpGetData {
				cancel()
				return zkserver.Fault{CloseBefore: true}
			}
			return zkserver.Fault{}
		})
		if _, err := tx.Coordinate(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		commits(t, s, joins)
	})
}

// The session that has begun the transaction gets no reply to that, and gives up.
func TestACoordinatorThatDoesNotKnowThatItBeganIsReplaced(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		begins, joins := s.Session(), s.Session()
		ctx, cancel := context.WithCancel(s.Ctx)
		sent := 0
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID != begins.ID() || r.Op != zkserver.OpMulti {
				return zkserver.Fault{}
			}
			if sent++; sent > 1 {
				cancel()
			}
			return zkserver.Fault{DropReply: true}
		})
		err := must.Get(begins.Transaction(s.Path, recipes.TransactionConfig{}))(t).Begin(ctx, nil, "1")
		if !errors.Is(err, recipes.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		commits(t, s, joins)
	})
}

// whileDecided calls happen after a coordinator has found the only site dead, and before it
// decides. It returns the result of Coordinate.
func whileDecided(t *testing.T, s *zktest.Scene, srv *zkserver.Server, happen func(tx func(recipes.Client) recipes.Transaction)) (recipes.Decision, error) {
	tx := func(session recipes.Client) recipes.Transaction {
		return must.Get(session.Transaction(s.Path, recipes.TransactionConfig{Variant: recipes.OwnNodes}))(t)
	}
	coordinator, dying := s.Session(), s.Session()
	must.Do(s, tx(coordinator).Begin(s.Ctx, nil, "1"))
	must.Get(tx(dying).Join(s.Ctx, "1"))(t)
	must.Do(s, dying.Close(s.Ctx))
	looked, decides := false, false
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		switch {
		case r.SessionID != coordinator.ID():
		case r.Op == zkserver.OpGetData && r.Path == s.Path+"/s_1":
			looked = true
		case r.Op == zkserver.OpMulti && looked && !decides:
			decides = true
			happen(tx)
		}
		return zkserver.Fault{}
	})
	d, err := tx(coordinator).Coordinate(s.Ctx)
	if !decides {
		s.Error("the case was not met")
	}
	return d, err
}

// A coordinator finds a site dead. Then the transaction ends, and another one begins, in which a
// site of that name lives. The coordinator must not decide the later transaction.
func TestADeadSiteDecidesOnlyItsOwnTransaction(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		other := s.Session()
		var site recipes.Site
		_, err := whileDecided(t, s, srv, func(tx func(recipes.Client) recipes.Transaction) {
			must.Get(tx(other).Abort(s.Ctx, ""))(t)
			must.Report(t, must.Get(tx(other).Join(s.Ctx, "1"))(t).Done(s.Ctx))
			must.Report(t, tx(other).Begin(s.Ctx, nil, "1"))
			site = must.Get(tx(other).Join(s.Ctx, "1"))(t)
		})
		if !errors.Is(err, recipes.ErrNoTransaction) {
			t.Errorf("the coordinator of the ended transaction: %v", err)
		}
		must.Report(t, site.Vote(s.Ctx, recipes.VoteCommit))
		next := must.Get(other.Transaction(s.Path, recipes.TransactionConfig{}))(t)
		if d, err := next.Coordinate(s.Ctx); err != nil || !d.Commit {
			t.Errorf("the next transaction: %+v, %v", d, err)
		}
	})
}

// A site is dead, and an operator deletes the record that it had joined. So it can join again,
// and counts as alive.
func TestASiteThatMayJoinAgainIsNotDead(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		other := s.Session()
		d, err := whileDecided(t, s, srv, func(tx func(recipes.Client) recipes.Transaction) {
			must.Report(t, s.Raw.Delete(s.Path+"/joined_1", -1))
			joins := sync.OnceFunc(func() {
				must.Report(t, must.Get(tx(other).Join(s.Ctx, "1"))(t).Vote(s.Ctx, recipes.VoteCommit))
			})
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				if r.SessionID != other.ID() && r.Op == zkserver.OpGetChildren2 { // the coordinator lists the sites again
					joins()
				}
				return zkserver.Fault{}
			})
		})
		if err != nil || !d.Commit {
			t.Errorf("decided %+v, %v", d, err)
		}
	})
}
