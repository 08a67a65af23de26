package twophase_test

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// All sites have voted for a commit, and one dies before the decision is written. The
// transaction that decides checks the votes, so the decision is not a commit.
func TestACommitRestsOnVotesThatExist(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	coordinator, living, dying := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Open(t, srv)
	tx := transactionOf(t, coordinator, recipes.OwnNodes)
	must.Do(t, tx.Begin(ctx, nil, "lives", "dies"))
	for s, name := range map[recipes.Client]string{living: "lives", dying: "dies"} {
		site := must.Get(transactionOf(t, s, recipes.OwnNodes).Join(ctx, name))(t)
		must.Do(t, site.Vote(ctx, recipes.VoteCommit))
	}
	met := zktest.Between(srv, coordinator, func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti }, func() {
		srv.ExpireSession(dying.ID())
	})
	d := must.Get(tx.Coordinate(ctx))(t)
	if !met() {
		t.Fatal("the case was not met")
	}
	if d.Commit {
		t.Errorf("decided %+v, but the site named dies was dead", d)
	}
}

// The coordinator lists the sites that have joined, and lists them again with a watch for the
// others. The last site joins in between.
func TestTheLastSiteJoinsBeforeItIsWatchedFor(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		coordinator := s.Session()
		transaction := func(session recipes.Client) recipes.Transaction {
			return must.Get(session.Transaction(s.Path, recipes.TransactionConfig{Variant: recipes.OwnNodes}))(t)
		}
		tx := transaction(coordinator)
		must.Do(t, tx.Begin(s.Ctx, nil, "1"))
		joins, listings := transaction(s.Session()), 0
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID != coordinator.ID() || r.Op != zkserver.OpGetChildren2 {
				return zkserver.Fault{}
			}
			if listings++; listings == 2 {
				site, err := joins.Join(s.Ctx, "1")
				if err == nil {
					err = site.Vote(s.Ctx, recipes.VoteCommit)
				}
				if err != nil {
					t.Error(err)
				}
			}
			return zkserver.Fault{}
		})
		d, err := tx.Coordinate(s.Ctx)
		if err != nil || !d.Commit {
			t.Errorf("decided %+v, %v", d, err)
		}
		if listings < 2 {
			t.Error("the case was not met")
		}
	})
}

// Between the two reads of a site that joins, the transaction ends and the next one begins at the
// path. The site must not vote in one transaction on the payload of the other.
func TestASiteVotesOnThePayloadThatItWasGiven(t *testing.T) {
	for _, v := range recipes.Variants() {
		t.Run(string(v), func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				transaction := func(session recipes.Client) recipes.Transaction {
					return must.Get(session.Transaction(s.Path, recipes.TransactionConfig{Variant: v}))(t)
				}
				tx, other := transaction(s.Session()), transaction(s.Session())
				must.Do(t, tx.Begin(s.Ctx, []byte("first"), "1"))
				first := must.Get(other.Join(s.Ctx, "1"))(t)
				must.Get(tx.Abort(s.Ctx, ""))(t)
				joining, looks := s.Session(), 0
				srv.SetFault(func(r zkserver.Request) zkserver.Fault {
					if r.SessionID != joining.ID() || r.Op != zkserver.OpGetData {
						return zkserver.Fault{}
					}
					if looks++; looks == 2 {
						must.Report(t, first.Done(s.Ctx))
						must.Report(t, tx.Begin(s.Ctx, []byte("second"), "1"))
					}
					return zkserver.Fault{}
				})
				site := must.Get(transaction(joining).Join(s.Ctx, "1"))(t)
				if err := site.Vote(s.Ctx, recipes.VoteCommit); err != nil || string(site.Payload()) != "second" {
					t.Errorf("%v; voted on %q", err, site.Payload())
				}
				if looks < 2 {
					t.Error("the case was not met")
				}
			})
		})
	}
}

// A site votes again in a new session, after the decision. Its vote is refused. Before it reads
// the earlier vote, the session of that vote ends, and the znode is gone. The transaction still
// exists, because the site is not done. (The simulation found this case.)
func TestAVoteWhoseSessionEndsMeanwhileIsNotAnEndedTransaction(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		transaction := func(session recipes.Client) recipes.Transaction {
			return must.Get(session.Transaction(s.Path, recipes.TransactionConfig{Variant: recipes.OwnNodes}))(t)
		}
		before, after := s.Session(), s.Session()
		tx := transaction(s.Session())
		must.Do(t, tx.Begin(s.Ctx, nil, "1"))
		must.Do(t, must.Get(transaction(before).Join(s.Ctx, "1"))(t).Vote(s.Ctx, recipes.VoteCommit))
		if d, err := tx.Coordinate(s.Ctx); err != nil || !d.Commit {
			t.Fatalf("decided %+v, %v", d, err)
		}
		site := must.Get(transaction(after).Join(s.Ctx, "1"))(t)
		met := false
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == after.ID() && r.Op == zkserver.OpGetData {
				met = srv.ExpireSession(before.ID()) || met
			}
			return zkserver.Fault{}
		})
		if err := site.Vote(s.Ctx, recipes.VoteCommit); !errors.Is(err, recipes.ErrRemoved) || errors.Is(err, recipes.ErrNoTransaction) {
			t.Errorf("Vote: %v; want ErrRemoved", err)
		}
		if !met {
			t.Error("the case was not met")
		}
	})
}
