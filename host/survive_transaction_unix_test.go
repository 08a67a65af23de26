//go:build unix

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func transactionAt(t *testing.T, s recipes.Recipes, path string, variant recipes.Variant) recipes.Transaction {
	t.Helper()
	return must.Get(s.Transaction(path, recipes.TransactionConfig{Variant: variant}))(t)
}

// parties are the coordinator and a site in one session, and a site in another one.
type parties struct {
	*surviving
	variant      recipes.Variant
	tx, other    recipes.Transaction
	mine, theirs recipes.Site
	decided      []<-chan error
}

// survived checks that the other session notices nothing.
func (p *parties) survived(what string) {
	p.Helper()
	status, err := p.other.Status(ctx(p))
	if err != nil {
		p.Fatalf("%s, %s: %v", p.variant, what, err)
	}
	if status.Coordinated != (p.variant != recipes.AllWatch) {
		p.Errorf("%s, %s: there is no coordinator", p.variant, what)
	}
	for _, s := range status.Sites {
		if s.Dead {
			p.Errorf("%s, %s: site %s is dead", p.variant, what, s.Name)
		}
	}
}

func (p *parties) await(who string, wait func(context.Context) (recipes.Decision, error)) {
	p.decided = append(p.decided, begin(func() error {
		d, err := wait(ctx(p))
		if err != nil || !d.Commit {
			return fmt.Errorf("%s, %s got %+v: %v", p.variant, who, d, err)
		}
		return nil
	}))
}

// TestATransactionSurvivesItsPlugin kills the plugin after each step, and while the session waits.
// Both sites get the decision to commit.
func TestATransactionSurvivesItsPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	var all []*parties
	for _, variant := range recipes.Variants() {
		path := "/" + string(variant)
		all = append(all, &parties{surviving: v, variant: variant, tx: transactionAt(t, v.session, path, variant), other: transactionAt(t, v.rival, path, variant)})
	}
	for _, step := range []struct {
		what string
		make func(*parties) error
	}{
		{"begun", func(p *parties) error { return p.tx.Begin(ctx(t), []byte("payload"), "mine", "theirs") }},
		{"joined", func(p *parties) (err error) {
			p.mine = must.Get(p.tx.Join(ctx(t), "mine"))(t)
			p.theirs, err = p.other.Join(ctx(t), "theirs")
			return err
		}},
		{"voted", func(p *parties) error { return p.mine.Vote(ctx(t), recipes.VoteCommit) }},
		{"waiting", func(p *parties) error {
			p.await("coordinator", p.tx.Coordinate)
			p.await("mine", p.mine.Wait)
			p.await("theirs", p.theirs.Wait)
			_, err := v.session.Stats(ctx(t)) // most likely sent after those calls
			return err
		}},
		{"waiting again", func(*parties) error { return nil }},
	} {
		for _, p := range all {
			if err := step.make(p); err != nil {
				t.Fatalf("%s, %s: %v", p.variant, step.what, err)
			}
		}
		v.kill()
		for _, p := range all {
			p.survived(step.what)
		}
	}
	for _, p := range all {
		must.Do(t, p.theirs.Vote(ctx(t), recipes.VoteCommit))
		must.Report(t, errors.Join(<-p.decided[0], <-p.decided[1], <-p.decided[2]))
	}
	v.kill()
	for _, p := range all {
		must.Report(t, p.mine.Done(ctx(t)))
	}
	v.kill()
	for _, p := range all {
		if d, err := p.mine.Wait(ctx(t)); err == nil && !d.Commit {
			t.Errorf("%s: in the end it got %+v", p.variant, d)
		}
		must.Report(t, errors.Join(p.mine.Done(ctx(t)), p.theirs.Done(ctx(t)), p.mine.Done(ctx(t))))
		if _, err := p.other.Status(ctx(t)); !errors.Is(err, recipes.ErrNoTransaction) {
			t.Errorf("%s: the transaction still exists: %v", p.variant, err)
		}
	}
	v.kill()
	for _, p := range all {
		if err := p.mine.Done(ctx(t)); err != nil {
			t.Errorf("%s: done again, in another plugin: %v", p.variant, err)
		}
	}
	v.nothingLeft("")
}

// unanswered withholds the reply to the plugin's next request that matches. reached is closed
// when that request has arrived. The server carries it out unless the plugin dies first.
func (v *surviving) unanswered(match func(zkserver.Request) bool) (reached <-chan struct{}) {
	at, never := make(chan struct{}), make(chan struct{})
	v.Cleanup(func() { close(never) })
	var once sync.Once
	v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
		if r.SessionID == v.session.ID() && match(r) {
			once.Do(func() { f.HoldReply = never; close(at) })
		}
		return f
	})
	return at
}

func isMulti(r zkserver.Request) bool { return r.Op == zkserver.OpMulti }

// TestCoordinateIsNotRepeatedForAnotherTransaction: the transaction has ended, and another
// client has begun a new one at the path.
func TestCoordinateIsNotRepeatedForAnotherTransaction(t *testing.T) {
	t.Parallel()
	v := survive(t)
	for _, begun := range []bool{true, false} {
		t.Run(fmt.Sprintf("begun by this session: %v", begun), func(t *testing.T) {
			v, path := v.in(t), fmt.Sprint("/tx-", begun)
			tx, other := transactionAt(t, v.session, path, ""), transactionAt(t, v.rival, path, "")
			first := other
			if begun {
				first = tx
			}
			must.Do(t, first.Begin(ctx(t), nil, "theirs"))
			theirs := must.Get(other.Join(ctx(t), "theirs"))(t)
			must.Do(t, theirs.Vote(ctx(t), recipes.VoteCommit))
			reached := v.unanswered(isMulti)
			coordinated := begin(func() error { _, err := tx.Coordinate(ctx(t)); return err })
			closes(t, "the decision", reached)
			v.exists(path + "/decision")
			v.suspend()
			v.server.SetFault(nil)
			if d, err := theirs.Wait(ctx(t)); err != nil || !d.Commit {
				t.Errorf("%+v, %v", d, err)
			}
			must.Do(t, theirs.Done(ctx(t)))
			must.Do(t, other.Begin(ctx(t), nil, "another"))
			v.proceed()
			want := recipes.ErrUnknownOutcome
			if begun {
				want = recipes.ErrNoTransaction
			}
			if err := <-coordinated; !errors.Is(err, want) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Coordinate: %v", err)
			}
			if status, err := other.Status(ctx(t)); err != nil || !status.Coordinated || status.Decision != nil {
				t.Errorf("the other one: %+v, %v", status, err)
			}
		})
	}
}

// TestACanceledCoordinatorIsReplaced: a waiting site becomes the coordinator, whenever the
// call was cancelled. The plugin that should have deleted the coordinator's znode may have
// died.
func TestACanceledCoordinatorIsReplaced(t *testing.T) {
	t.Parallel()
	v := survive(t)
	for i, when := range []string{"before its plugin died", "without a plugin", "while it was resumed"} {
		t.Run(when, func(t *testing.T) {
			v, path := v.in(t), fmt.Sprint("/tx-", i)
			tx, other := transactionAt(t, v.session, path, ""), transactionAt(t, v.rival, path, "")
			must.Do(t, tx.Begin(ctx(t), nil, "theirs"))
			theirs := must.Get(other.Join(ctx(t), "theirs"))(t)
			canceled, cancel := context.WithCancel(ctx(t))
			coordinate := func() error { _, err := tx.Coordinate(canceled); return err }
			cancels := func(failed <-chan error) {
				cancel()
				if err := <-failed; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
			switch p := v.supervisor.Plugin(); when {
			case "before its plugin died":
				counting := v.unanswered(func(r zkserver.Request) bool { return r.Path == path+"/decision" })
				failed := begin(coordinate)
				closes(t, "Coordinate", counting)
				v.refuseDeletes()
				cancels(failed)
				v.diesRefused()
				v.proceed()
			case "without a plugin":
				v.suspend()
				cancels(begin(coordinate))
				v.proceed()
			case "while it was resumed":
				v.suspend()
				closes(t, "Exited", p.Exited())
				hold, resuming := make(chan struct{}), make(chan struct{})
				var once sync.Once
				v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
					if r.SessionID == v.session.ID() && r.Op == zkserver.OpGetEphemerals { // DropRest: no plugin serves the session yet
						f.HoldReply = hold
						once.Do(func() { close(resuming) })
					}
					return f
				})
				failed := begin(coordinate)
				v.proceed()
				closes(t, "DropRest", resuming)
				cancels(failed)
				v.server.SetFault(nil)
				close(hold)
			}
			must.Do(t, theirs.Vote(ctx(t), recipes.VoteCommit))
			if d, err := theirs.Wait(ctx(t)); err != nil || !d.Commit {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}

// TestASiteWhoseZnodeWasDeletedWithoutAPlugin: its vote fails, and the session continues.
func TestASiteWhoseZnodeWasDeletedWithoutAPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	tx := transactionAt(t, v.session, "/tx", recipes.OwnNodes)
	must.Do(t, tx.Begin(ctx(t), nil, "it"))
	it := must.Get(tx.Join(ctx(t), "it"))(t)
	v.suspend()
	v.remove("/tx/s_it")
	v.proceed()
	if err := it.Vote(ctx(t), recipes.VoteCommit); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrNoTransaction) || strings.Contains(err.Error(), "membership") {
		t.Errorf("its vote: %v", err)
	}
	if d, err := tx.Coordinate(ctx(t)); err != nil || d.Commit {
		t.Errorf("decided %+v, %v", d, err)
	}
	must.Report(t, v.session.Err())
}
