package twophase_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// The coordinator stops counting for good, although its session lives. A site that waits for it
// counts instead.
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

// commits makes the only site of the transaction vote, and checks that it gets a commit.
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

// The reply to a vote is lost, and the server throttles the second attempt. That does not show
// whether the vote was cast. If it throttles the first attempt, the vote was not.
func TestAThrottledAttemptAfterALostReply(t *testing.T) {
	for _, lost := range []bool{false, true} {
		zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
			tx := transactionOf(t, s.Session(), recipes.CoordinatorOnly)
			must.Do(t, tx.Begin(s.Ctx, nil, "1"))
			site := must.Get(tx.Join(s.Ctx, "1"))(t)
			sent := 0
			srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
				if r.Op == zkserver.OpMulti {
					sent++
					f.DropReply, f.Throttle = lost && sent == 1, !lost || sent > 1
				}
				return f
			})
			err := site.Vote(s.Ctx, recipes.VoteCommit)
			srv.SetFault(nil)
			if !errors.Is(err, recipes.ErrThrottled) || errors.Is(err, recipes.ErrUnknownOutcome) != lost {
				t.Errorf("a reply was lost: %t; the vote failed with %v", lost, err)
			}
		})
	}
}

// An operator replaces the znode of a site that has not voted yet. The coordinator watches the
// new znode too.
func TestASiteWhoseZnodeWasReplacedVotes(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, _ *zkserver.Server, s recipes.Client) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		tx := transactionOf(t, s, recipes.CoordinatorOnly)
		must.Do(t, tx.Begin(ctx, nil, "1"))
		site := must.Get(tx.Join(ctx, "1"))(t)
		decided := make(chan error)
		go func() { _, err := tx.Coordinate(ctx); decided <- err }()
		synctest.Wait()
		operator := must.Get(must.Get(s.Lock("/operator", recipes.LockConfig{}))(t).Acquire(ctx))(t)
		must.Do(t, operator.Write(ctx, recipes.Delete(tx.Path()+"/s_1", recipes.AnyVersion), recipes.Create(tx.Path()+"/s_1", nil)))
		synctest.Wait()
		must.Do(t, site.Vote(ctx, recipes.VoteCommit))
		must.Report(t, <-decided)
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
