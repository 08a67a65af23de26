package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The last site joins between the coordinator's look at who has joined and the
// one that arms the watch for who has not.
func TestTheLastSiteJoinsBeforeItIsWatchedFor(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		coordinator := s.session()
		transaction := func(session recipes.Client) recipes.Transaction {
			return must.Get(session.Transaction(s.path, recipes.TransactionConfig{Variant: recipes.OwnNodes}))(t)
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
				transaction := func(session recipes.Client) recipes.Transaction {
					return must.Get(session.Transaction(s.path, recipes.TransactionConfig{Variant: v}))(t)
				}
				tx, other := transaction(s.session()), transaction(s.session())
				if err := tx.Begin(s.ctx, []byte("first"), "1"); err != nil {
					t.Fatal(err)
				}
				first := must.Get(other.Join(s.ctx, "1"))(t)
				must.Get(tx.Abort(s.ctx, ""))(t)
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
				site := must.Get(transaction(joining).Join(s.ctx, "1"))(t)
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
		transaction := func(session recipes.Client) recipes.Transaction {
			return must.Get(session.Transaction(s.path, recipes.TransactionConfig{Variant: recipes.OwnNodes}))(t)
		}
		before, after := s.session(), s.session()
		tx := transaction(s.session())
		if err := tx.Begin(s.ctx, nil, "1"); err != nil {
			t.Fatal(err)
		}
		if err := must.Get(transaction(before).Join(s.ctx, "1"))(t).Vote(s.ctx, recipes.VoteCommit); err != nil {
			t.Fatal(err)
		}
		if d, err := tx.Coordinate(s.ctx); err != nil || !d.Commit {
			t.Fatalf("%+v, %v", d, err)
		}
		site := must.Get(transaction(after).Join(s.ctx, "1"))(t)
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

// A site joins late, and the coordinator looks again at who has joined. Each of its
// requests may fail: still nobody commits without the votes of all sites, and no site that
// lives is taken for dead.
func TestALateSiteIsWaitedForThoughTheCoordinatorMeetsFaults(t *testing.T) {
	var cases atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for _, vote := range []recipes.Vote{recipes.VoteCommit, recipes.VoteAbort} {
			for _, waits := range []bool{false, true} {
				t.Run(fmt.Sprintf("it votes %s, another waits: %v", vote, waits), func(t *testing.T) {
					t.Parallel()
					sweep(t, &cases, func(t *testing.T, f fault, at int64) int64 {
						if f.expires() {
							return 0
						}
						return lateSite(t, f, at, vote, waits)
					})
				})
			}
		}
	})
	fmt.Printf("coordinators: %d cases\n", cases.Load())
}

// lateSite has the victim coordinate two sites of the other session. The second one joins
// when the coordinator waits, and votes when it waits again. With waits the first one waits
// for the decision all the time: it may become coordinator.
func lateSite(t *testing.T, f fault, at int64, vote recipes.Vote, waits bool) (requests int64) {
	onStage(t, func(s *stage) {
		tx := s.transaction(s.victim, recipes.OwnNodes)
		s.ok(tx.Begin(s.ctx, nil, "1", "2"))
		first := s.voted(s.other, "1", recipes.VoteCommit)
		told := make(chan recipes.Decision, 2)
		if waits {
			go func() {
				d, err := first.Wait(s.ctx)
				if err != nil {
					s.Errorf("the first site: %v", err)
				}
				told <- d
			}()
		}
		calm()

		acting, cancel := context.WithCancel(s.ctx)
		defer cancel()
		sent := f.strike(s.srv, s.victim, at, cancel)
		var second recipes.Site
		err := s.acts(acting, func(ctx context.Context) error {
			d, err := tx.Coordinate(ctx)
			if err == nil {
				told <- d
			}
			return err
		}, func() (err error) {
			undecided := func(when string) {
				calm()
				if n := s.node(stagePath + "/decision"); n != nil {
					s.Errorf("the second site has not %s, and the decision is %q", when, n.Data)
				}
			}
			undecided("joined")
			if second, err = s.transaction(s.other, "").Join(s.ctx, "2"); err != nil {
				return err
			}
			undecided("voted")
			return second.Vote(s.ctx, vote)
		})
		calm()
		requests = sent.Load()
		s.srv.SetFault(nil)
		cancel()
		if !f.allows(err) && (f.answered() || !errors.Is(err, recipes.ErrUnknownOutcome)) {
			s.Errorf("the coordinator is told %v", err)
		}
		again, err := tx.Coordinate(s.ctx)
		if err != nil || again.Commit != (vote == recipes.VoteCommit) || strings.Contains(again.Reason, "died") {
			s.Errorf("asked again: %+v, %v", again, err)
		}
		calm()
		for range len(told) {
			if d := <-told; d != again {
				s.Errorf("one was told %+v, and another %+v", d, again)
			}
		}
		for _, site := range []recipes.Site{first, second} {
			s.fails("done", site.Done(s.ctx))
		}
		if s.present(stagePath) {
			s.Error("all are done, and the transaction is there")
		}
	})
	return requests
}
