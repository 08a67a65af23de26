package link_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// commit is a two-phase commit on an in-process server. It has one session whose calls lose
// their answers, and one outside the plugin.
type commit struct {
	*spy
	tx, beside recipes.Transaction
}

func newCommit(t *testing.T, variant recipes.Variant) commit {
	t.Helper()
	zk, spy := zktest.Embedded(t), newSpy()
	transaction := func(open recipes.Opener) recipes.Transaction {
		s := must.Get(open(ctx(t), recipes.SessionConfig{Servers: []string{zk.Addr()}}))(t)
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		return must.Get(s.Transaction("/tx", recipes.TransactionConfig{Variant: variant}))(t)
	}
	return commit{spy, transaction(newLinkOver(t, zookeeper.Open, spy.option()).client.Open), transaction(zookeeper.Open)}
}

// site joins as the only site, outside the plugin, and votes to commit.
func (c commit) site(t *testing.T) recipes.Site {
	t.Helper()
	site, err := c.beside.Join(ctx(t), "a")
	if err == nil {
		err = site.Vote(ctx(t), recipes.VoteCommit)
	}
	must.Do(t, err)
	return site
}

// If the Begin were not undone, the session would be a coordinator that does not count votes,
// and the sites would wait until it ends.
func TestBeginWhoseAnswerIsLostLeavesNoCoordinator(t *testing.T) {
	for _, variant := range recipes.Variants() {
		for name, cancelled := range map[string]bool{"the answer is lost": false, "and the caller cancels": true} {
			t.Run(string(variant)+", "+name, func(t *testing.T) {
				t.Parallel()
				c := newCommit(t, variant)
				began, cancel := context.WithCancel(ctx(t))
				defer cancel()
				c.loseAnswer("BeginTransaction", func() {
					if cancelled {
						cancel()
					}
				})
				matches(t, c.tx.Begin(began, nil, "a"), recipes.ErrUnknownOutcome)
				d, err := c.site(t).Wait(ctx(t))
				if err != nil || !d.Commit {
					t.Errorf("%+v, %v", d, err)
				}
			})
		}
	}
}

// The plugin undoes a call that was cancelled, even after its answer.
func TestACancelledCallOfATransactionHasNotSucceeded(t *testing.T) {
	c := newCommit(t, recipes.CoordinatorOnly)
	for _, call := range []struct {
		method string
		do     func(context.Context) error
	}{
		{"BeginTransaction", func(ctx context.Context) error { return c.tx.Begin(ctx, nil, "a") }},
		{"JoinTransaction", func(ctx context.Context) error { _, err := c.tx.Join(ctx, "a"); return err }},
	} {
		wanted, cancel := context.WithCancel(ctx(t))
		c.answer(call.method, func() error { cancel(); return nil })
		matches(t, call.do(wanted), recipes.ErrUnknownOutcome, context.Canceled)
	}
	if d, err := c.site(t).Wait(ctx(t)); err != nil || !d.Commit {
		t.Errorf("%+v, %v", d, err)
	}
}

// The request id is only used by Abandon.
func TestCoordinatorKeepsItsRoleAfterTheAnswer(t *testing.T) {
	c := newCommit(t, recipes.CoordinatorOnly)
	must.Do(t, c.tx.Begin(ctx(t), nil, "a"))
	status, err := c.beside.Status(ctx(t))
	if err != nil || !status.Coordinated || c.count("Abandon") > 0 {
		t.Errorf("%+v, %v; abandoned %d times", status, err, c.count("Abandon"))
	}
}

// The plugin dies after its answer, before the caller has it. The next plugin resumes the
// coordinator: DropRest would delete it.
func TestACoordinatorThatHasJustBegunIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, made := client.Unconnected(), make(chan string, 9)
		begin := func(r *pb.BeginTransactionRequest) (*pb.BeginTransactionResponse, error) {
			made <- "begin " + r.GetResumed()
			return &pb.BeginTransactionResponse{Transaction: "tx-1"}, nil
		}
		var kill func()
		_, kill = play(t, c, &scripted{open: serves(time.Hour), begin: begin, acquired: func() {
			kill()
			play(t, c, &scripted{open: serves(time.Hour), begin: begin, drop: func() { made <- "drop" }})
			synctest.Wait()
		}})
		s := openScripted(t, c)
		must.Do(t, must.Get(s.Transaction("/tx", recipes.TransactionConfig{Variant: recipes.CoordinatorOnly}))(t).Begin(ctx(t), nil, "a"))
		until(t, s, recipes.Connected)
		for _, want := range []string{"begin ", "begin tx-1", "drop"} {
			if got := next(t, made); got != want {
				t.Errorf("%q was called; want %q", got, want)
			}
		}
	})
}

// A call that begins while no plugin serves the session reaches the next one before DropRest, and
// Pause counts it once.
func TestABeginThatWaitsForAPluginIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client.Unconnected()
		_, kill := play(t, c, &scripted{open: serves(time.Hour)})
		s := openScripted(t, c)
		kill()
		until(t, s, recipes.Suspended)
		began := make(chan error, 1)
		tx := must.Get(s.Transaction("/tx", recipes.TransactionConfig{Variant: recipes.CoordinatorOnly}))(t)
		go func() { began <- tx.Begin(ctx(t), nil, "a") }()
		synctest.Wait()
		p, _ := play(t, c, &scripted{open: serves(time.Hour), begin: func(*pb.BeginTransactionRequest) (*pb.BeginTransactionResponse, error) {
			return &pb.BeginTransactionResponse{Transaction: "tx-1"}, nil
		}})
		must.Do(t, next(t, began))
		until(t, s, recipes.Connected)
		paused := time.Now()
		if p.Pause(ctx(t), time.Minute); time.Since(paused) > 0 {
			t.Errorf("Pause has waited %v for a call that has returned", time.Since(paused))
		}
	})
}

// A site may have joined, and the decision may have been made.
func TestLostAnswersOfATransactionAreUnknownOutcomes(t *testing.T) {
	c := newCommit(t, recipes.OwnNodes)
	must.Do(t, c.tx.Begin(ctx(t), nil, "a"))
	c.loseAnswer("JoinTransaction", func() {})
	_, err := c.tx.Join(ctx(t), "a")
	matches(t, err, recipes.ErrUnknownOutcome)
	site := must.Get(c.tx.Join(ctx(t), "a"))(t) // again
	must.Do(t, site.Vote(ctx(t), recipes.VoteCommit))
	c.loseAnswer("CoordinateTransaction", func() {})
	_, err = c.tx.Coordinate(ctx(t))
	matches(t, err, recipes.ErrUnknownOutcome)
	c.loseAnswer("AwaitDecision", func() {})
	_, err = site.Wait(ctx(t))
	matches(t, err, recipes.ErrUnknownOutcome)
	if d, err := site.Wait(ctx(t)); err != nil || !d.Commit {
		t.Errorf("%+v, %v", d, err)
	}
}

// The plugin dies before it answers. The next one does not have the site, which says nothing
// about the earlier call.
func TestASiteThatIsNotResumedDoesNotHideAnUnknownOutcome(t *testing.T) {
	for _, call := range []string{"VoteTransaction", "FinishSite"} {
		for _, sent := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, sent before: %v", call, sent), func(t *testing.T) {
				t.Parallel()
				s, before, after, move := moving(t)
				tx := must.Get(s.Transaction("/tx", recipes.TransactionConfig{Variant: recipes.CoordinatorOnly}))(t)
				must.Do(t, tx.Begin(ctx(t), nil, "a"))
				site := must.Get(tx.Join(ctx(t), "a"))(t)
				vote := func() error { return site.Vote(ctx(t), recipes.VoteCommit) }
				end := vote
				if call == "FinishSite" {
					must.Do(t, vote())
					must.Get(tx.Coordinate(ctx(t)))(t)
					end = func() error { return site.Done(ctx(t)) }
				}
				after.refuse("JoinTransaction", func() error { return recipes.ErrAccessDenied })
				if sent {
					before.loseAnswer(call, move)
				} else {
					move()
				}
				err := end()
				matches(t, err, recipes.ErrAccessDenied)
				if errors.Is(err, recipes.ErrUnknownOutcome) != sent {
					t.Error(err)
				}
			})
		}
	}
}
