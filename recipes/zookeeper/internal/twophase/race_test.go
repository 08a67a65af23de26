package twophase_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
				joining := s.Session()
				met := zktest.Between(srv, joining, zktest.Nth(2, zktest.Op(zkserver.OpGetData)), func() {
					must.Report(t, errors.Join(first.Done(s.Ctx), tx.Begin(s.Ctx, []byte("second"), "1")))
				})
				site := must.Get(transaction(joining).Join(s.Ctx, "1"))(t)
				if err := site.Vote(s.Ctx, recipes.VoteCommit); err != nil || string(site.Payload()) != "second" {
					t.Errorf("%v; voted on %q", err, site.Payload())
				}
				if !met() {
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
		met := zktest.Between(srv, after, zktest.Op(zkserver.OpGetData), func() { srv.ExpireSession(before.ID()) })
		if err := site.Vote(s.Ctx, recipes.VoteCommit); !errors.Is(err, recipes.ErrRemoved) || errors.Is(err, recipes.ErrNoTransaction) {
			t.Errorf("Vote: %v; want ErrRemoved", err)
		}
		if !met() {
			t.Error("the case was not met")
		}
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
	looked := false
	decides := zktest.Between(srv, coordinator, func(r zkserver.Request) bool {
		looked = looked || r.Op == zkserver.OpGetData && r.Path == s.Path+"/s_1"
		return looked && r.Op == zkserver.OpMulti
	}, func() { happen(tx) })
	d, err := tx(coordinator).Coordinate(s.Ctx)
	if !decides() {
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

// Two calls of a session wait for one decision. The first one stops waiting while the second
// reads, so their watch fires and is removed. That is not a decision.
func TestAWaitOutlivesAnother(t *testing.T) {
	for _, v := range recipes.Variants() {
		t.Run(string(v), func(t *testing.T) {
			zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, coordinator recipes.Client) {
				tx := transactionOf(t, coordinator, v)
				must.Do(t, tx.Begin(ctx, nil, "1"))
				s := zktest.OpenVirtual(t, srv)
				site := must.Get(transactionOf(t, s, v).Join(ctx, "1"))(t)
				first, stop := context.WithCancel(ctx)
				go site.Wait(first)
				synctest.Wait()
				read, held := make(chan struct{}), false
				srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
					if r.SessionID == s.ID() && r.Op == zkserver.OpExists && strings.HasSuffix(r.Path, "/decision") && !held {
						held, f.Hold = true, read
					}
					return f
				})
				type result struct {
					recipes.Decision
					error
				}
				second := make(chan result, 1)
				go func() {
					d, err := site.Wait(ctx)
					second <- result{d, err}
				}()
				synctest.Wait()
				stop()
				synctest.Wait()
				close(read)
				synctest.Wait()
				must.Get(tx.Abort(ctx, "enough"))(t)
				if r := <-second; r.error != nil || r.Reason == "" || !held {
					t.Errorf("%+v; the case was met: %v", r, held)
				}
			})
		})
	}
}
