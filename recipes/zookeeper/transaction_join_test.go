package zookeeper_test

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The last site joins between the coordinator's look at who has joined and the
// one that arms the watch for who has not.
func TestTheLastSiteJoinsBeforeItIsWatchedFor(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		coordinator := s.session()
		transaction := func(session recipes.Session) recipes.Transaction {
			return must[recipes.Transaction](t)(session.Transaction(s.path, recipes.TransactionConfig{Variant: recipes.OwnNodes}))
		}
		tx := transaction(coordinator)
		if err := tx.Begin(s.ctx, nil, "1"); err != nil {
			t.Fatal(err)
		}
		joins, listings := transaction(s.session()), 0
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID != coordinator.ID() || r.Op != zkserver.OpGetChildren2 {
				return zkserver.Fault{}
			}
			if listings++; listings == 2 {
				site, err := joins.Join(s.ctx, "1")
				if err == nil {
					err = site.Vote(s.ctx, recipes.VoteCommit)
				}
				if err != nil {
					t.Error(err)
				}
			}
			return zkserver.Fault{}
		})
		d, err := tx.Coordinate(s.ctx)
		if err != nil || !d.Commit {
			t.Errorf("%+v, %v", d, err)
		}
		if listings < 2 {
			t.Error("the case was not met")
		}
	})
}

// The transaction ends, and the next one begins at the path, between the two reads of a
// site that joins. The site must not vote on one payload in the transaction of another.
func TestASiteVotesOnThePayloadThatItWasGiven(t *testing.T) {
	for _, v := range recipes.Variants() {
		t.Run(string(v), func(t *testing.T) {
			onEmbedded(t, func(s *scene, srv *zkserver.Server) {
				transaction := func(session recipes.Session) recipes.Transaction {
					return must[recipes.Transaction](t)(session.Transaction(s.path, recipes.TransactionConfig{Variant: v}))
				}
				tx, other := transaction(s.session()), transaction(s.session())
				if err := tx.Begin(s.ctx, []byte("first"), "1"); err != nil {
					t.Fatal(err)
				}
				first := must[recipes.Site](t)(other.Join(s.ctx, "1"))
				must[recipes.Decision](t)(tx.Abort(s.ctx, ""))
				joining, looks := s.session(), 0
				srv.SetFault(func(r zkserver.Request) zkserver.Fault {
					if r.SessionID != joining.ID() || r.Op != zkserver.OpGetData {
						return zkserver.Fault{}
					}
					if looks++; looks == 2 {
						if err := first.Done(s.ctx); err != nil {
							t.Error(err)
						}
						if err := tx.Begin(s.ctx, []byte("second"), "1"); err != nil {
							t.Error(err)
						}
					}
					return zkserver.Fault{}
				})
				site := must[recipes.Site](t)(transaction(joining).Join(s.ctx, "1"))
				if err := site.Vote(s.ctx, recipes.VoteCommit); err != nil || string(site.Payload()) != "second" {
					t.Errorf("%v; voted on %q", err, site.Payload())
				}
				if looks < 2 {
					t.Error("the case was not met")
				}
			})
		})
	}
}

// A site votes again in a new session, after the decision. The session in which it has
// voted ends between the refused vote and the look at the vote. The transaction is
// still there: the site has not said that it is done. (Found by the simulation.)
func TestAVoteWhoseSessionEndsMeanwhileIsNotAnEndedTransaction(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		transaction := func(session recipes.Session) recipes.Transaction {
			return must[recipes.Transaction](t)(session.Transaction(s.path, recipes.TransactionConfig{Variant: recipes.OwnNodes}))
		}
		before, after := s.session(), s.session()
		tx := transaction(s.session())
		if err := tx.Begin(s.ctx, nil, "1"); err != nil {
			t.Fatal(err)
		}
		if err := must[recipes.Site](t)(transaction(before).Join(s.ctx, "1")).Vote(s.ctx, recipes.VoteCommit); err != nil {
			t.Fatal(err)
		}
		if d, err := tx.Coordinate(s.ctx); err != nil || !d.Commit {
			t.Fatalf("%+v, %v", d, err)
		}
		site := must[recipes.Site](t)(transaction(after).Join(s.ctx, "1"))
		met := false
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == after.ID() && r.Op == zkserver.OpGetData {
				met = srv.ExpireSession(before.ID()) || met
			}
			return zkserver.Fault{}
		})
		if err := site.Vote(s.ctx, recipes.VoteCommit); !errors.Is(err, recipes.ErrRemoved) || errors.Is(err, recipes.ErrNoTransaction) {
			t.Errorf("%v", err)
		}
		if !met {
			t.Error("the case was not met")
		}
	})
}
