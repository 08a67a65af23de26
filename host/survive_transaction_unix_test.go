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

// TestATransactionOutlivesItsPlugin: a session is coordinator and a site, and its plugin
// is killed after each step, and while it waits. The other site notices nothing, and both
// are told to commit.
func TestATransactionOutlivesItsPlugin(t *testing.T) {
	v := survive(t)
	for _, variant := range recipes.Variants() {
		t.Run(string(variant), func(t *testing.T) {
			path := "/" + string(variant)
			tx, other := transactionAt(t, v.session, path, variant), transactionAt(t, v.rival, path, variant)
			stands := func(after string) {
				t.Helper()
				v.kill()
				status, err := other.Status(ctx(t))
				if err != nil {
					t.Fatalf("%s: %v", after, err)
				}
				if status.Coordinated != (variant != recipes.AllWatch) {
					t.Errorf("%s: the coordinator's place was given up", after)
				}
				for _, s := range status.Sites {
					if s.Dead {
						t.Errorf("%s: site %s is dead", after, s.Name)
					}
				}
			}
			must.Do(t, tx.Begin(ctx(t), []byte("payload"), "mine", "theirs"))
			stands("begun")
			mine := must.Get(tx.Join(ctx(t), "mine"))(t)
			theirs := must.Get(other.Join(ctx(t), "theirs"))(t)
			stands("joined")
			must.Do(t, mine.Vote(ctx(t), recipes.VoteCommit))
			stands("voted")
			told := make(chan error, 3)
			await := func(who string, wait func(context.Context) (recipes.Decision, error)) {
				go func() {
					switch d, err := wait(ctx(t)); {
					case err != nil:
						told <- fmt.Errorf("%s: %w", who, err)
					case !d.Commit:
						told <- fmt.Errorf("%s was told %+v", who, d)
					default:
						told <- nil
					}
				}()
			}
			await("coordinator", tx.Coordinate)
			await("mine", mine.Wait)
			await("theirs", theirs.Wait)
			if _, err := v.session.Stats(ctx(t)); err != nil { // which is asked for after the calls, most likely
				t.Error(err)
			}
			stands("waiting")
			stands("waiting again")
			must.Do(t, theirs.Vote(ctx(t), recipes.VoteCommit))
			must.Report(t, errors.Join(<-told, <-told, <-told))
			v.kill()
			must.Report(t, mine.Done(ctx(t)))
			v.kill()
			if d, err := mine.Wait(ctx(t)); err == nil && !d.Commit {
				t.Errorf("in the end it was told %+v", d)
			}
			must.Report(t, errors.Join(mine.Done(ctx(t)), theirs.Done(ctx(t)), mine.Done(ctx(t))))
			if _, err := other.Status(ctx(t)); !errors.Is(err, recipes.ErrNoTransaction) {
				t.Errorf("it is still there: %v", err)
			}
			v.kill()
			if err := mine.Done(ctx(t)); err != nil {
				t.Errorf("done again, in another plugin: %v", err)
			}
		})
	}
	if there := ephemerals(v.server, ""); len(there) > 0 {
		t.Errorf("left: %q", there)
	}
}

// unheard keeps back the answer to the first request of the plugin that matters, from
// now on. reached is closed when it has arrived. It is carried out unless the plugin dies
// first.
func (v *surviving) unheard(matters func(zkserver.Request) bool) (reached <-chan struct{}) {
	at, never := make(chan struct{}), make(chan struct{})
	v.Cleanup(func() { close(never) })
	var once sync.Once
	v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
		if r.SessionID == v.session.ID() && matters(r) {
			once.Do(func() { f.HoldReply = never; close(at) })
		}
		return f
	})
	return at
}

// TestCallsOfATransactionAreRepeated: those that were carried out, and not answered. Begin
// is not, and says so.
func TestCallsOfATransactionAreRepeated(t *testing.T) {
	v := survive(t)
	multi := func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti }
	for _, variant := range recipes.Variants() {
		t.Run(string(variant), func(t *testing.T) {
			path := "/" + string(variant)
			tx := transactionAt(t, v.session, path, variant)
			unheard := func(what, made string, call func() error) error {
				t.Helper()
				reached, done := v.unheard(multi), make(chan error, 1)
				go func() { done <- call() }()
				closes(t, what, reached)
				if made != "" {
					v.exists(path + made)
				}
				v.kill()
				v.server.SetFault(nil)
				return <-done
			}
			err := unheard("Begin", "/protocol", func() error { return tx.Begin(ctx(t), nil, "it") })
			if !errors.Is(err, recipes.ErrUnknownOutcome) || errors.Is(err, recipes.ErrSessionLost) {
				t.Errorf("Begin: %v", err)
			}
			var it recipes.Site
			join := func() (err error) { it, err = tx.Join(ctx(t), "it"); return err }
			if variant == recipes.OwnNodes {
				err = unheard("Join", "/joined_it", join)
			} else {
				err = join()
			}
			if err != nil {
				t.Fatal(err)
			}
			must.Report(t, unheard("Vote", "", func() error { return it.Vote(ctx(t), recipes.VoteCommit) }))
			if err := it.Vote(ctx(t), recipes.VoteAbort); !errors.Is(err, recipes.ErrVoted) {
				t.Errorf("another vote: %v", err)
			}
			var d recipes.Decision
			wait := func() (err error) { d, err = it.Wait(ctx(t)); return err }
			first := "/coordinator" // the site takes the place
			if variant == recipes.AllWatch {
				first = "/decision"
			}
			if err := unheard("Wait", first, wait); err != nil || !d.Commit {
				t.Errorf("told %+v: %v", d, err)
			}
			must.Report(t, unheard("Done", "", func() error { return it.Done(ctx(t)) }))
			if _, err := tx.Status(ctx(t)); !errors.Is(err, recipes.ErrNoTransaction) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
	if there := ephemerals(v.server, ""); len(there) > 0 {
		t.Errorf("left: %q", there)
	}
}

// TestCoordinateIsNotRepeatedForAnotherTransaction: the one that this session has begun is
// over, and another one has begun at the path.
func TestCoordinateIsNotRepeatedForAnotherTransaction(t *testing.T) {
	for _, begun := range []bool{true, false} {
		t.Run(fmt.Sprintf("begun by this session: %v", begun), func(t *testing.T) {
			v := survive(t)
			tx, other := transactionAt(t, v.session, "/tx", ""), transactionAt(t, v.rival, "/tx", "")
			first := other
			if begun {
				first = tx
			}
			must.Do(t, first.Begin(ctx(t), nil, "theirs"))
			theirs, err := other.Join(ctx(t), "theirs")
			if err == nil {
				err = theirs.Vote(ctx(t), recipes.VoteCommit)
			}
			if err != nil {
				t.Fatal(err)
			}
			reached, told := v.unheard(func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti }), make(chan error, 1)
			go func() {
				_, err := tx.Coordinate(ctx(t))
				told <- err
			}()
			closes(t, "the decision", reached)
			v.exists("/tx/decision")
			v.suspend()
			v.server.SetFault(nil)
			if d, err := theirs.Wait(ctx(t)); err != nil || !d.Commit {
				t.Errorf("%+v, %v", d, err)
			}
			must.Do(t, theirs.Done(ctx(t)))
			must.Do(t, other.Begin(ctx(t), nil, "another"))
			v.goOn()
			want := recipes.ErrUnknownOutcome
			if begun {
				want = recipes.ErrNoTransaction
			}
			if err := <-told; !errors.Is(err, want) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("told %v", err)
			}
			if status, err := other.Status(ctx(t)); err != nil || !status.Coordinated || status.Decision != nil {
				t.Errorf("the other one: %+v, %v", status, err)
			}
		})
	}
}

// TestARepeatedCallThatIsGivenUpMayHaveHappened: nobody answers it.
func TestARepeatedCallThatIsGivenUpMayHaveHappened(t *testing.T) {
	v := survive(t)
	tx := transactionAt(t, v.session, "/tx", "")
	must.Do(t, tx.Begin(ctx(t), nil, "it"))
	it := must.Get(tx.Join(ctx(t), "it"))(t)
	given, cancel := context.WithCancel(ctx(t))
	reached, voted := v.unheard(func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti }), make(chan error, 1)
	go func() { voted <- it.Vote(given, recipes.VoteCommit) }()
	closes(t, "the vote", reached)
	v.suspend()
	cancel()
	if err := <-voted; !errors.Is(err, recipes.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	v.server.SetFault(nil)
	v.goOn()
}

// TestACoordinatorThatWasGivenUpDoesNotStay: a waiting site takes its place, whatever has
// become of the plugin that was to give it up, or of the one that has taken it up.
func TestACoordinatorThatWasGivenUpDoesNotStay(t *testing.T) {
	for _, when := range []string{"before its plugin died", "without a plugin", "when it was taken up"} {
		t.Run(when, func(t *testing.T) {
			v := survive(t)
			tx, other := transactionAt(t, v.session, "/tx", ""), transactionAt(t, v.rival, "/tx", "")
			must.Do(t, tx.Begin(ctx(t), nil, "theirs"))
			theirs := must.Get(other.Join(ctx(t), "theirs"))(t)
			given, cancel := context.WithCancel(ctx(t))
			failed := make(chan error, 1)
			coordinate := func() { _, err := tx.Coordinate(given); failed <- err }
			giveUp := func() {
				cancel()
				if err := <-failed; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
			switch p := v.supervisor.Plugin(); when {
			case "before its plugin died":
				counting := v.unheard(func(r zkserver.Request) bool { return r.Path == "/tx/decision" })
				go coordinate()
				closes(t, "Coordinate", counting)
				v.server.SetFault(func(r zkserver.Request) zkserver.Fault { // the place stays
					return zkserver.Fault{CloseBefore: r.SessionID == v.session.ID() && (r.Op == zkserver.OpDelete || r.Op == zkserver.OpMulti)}
				})
				giveUp()
				if _, err := v.session.Stats(ctx(t)); err != nil { // which the plugin hears after that
					t.Error(err)
				}
				v.suspend()
				closes(t, "Exited", p.Exited())
				v.server.SetFault(nil)
				v.goOn()
			case "without a plugin":
				v.suspend()
				go coordinate()
				giveUp()
				v.goOn()
			case "when it was taken up":
				v.suspend()
				closes(t, "Exited", p.Exited())
				hold, taken := make(chan struct{}), make(chan struct{})
				var once sync.Once
				v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
					if r.SessionID == v.session.ID() && r.Op == zkserver.OpGetEphemerals { // DropRest: it is not served yet
						f.HoldReply = hold
						once.Do(func() { close(taken) })
					}
					return f
				})
				go coordinate()
				v.goOn()
				closes(t, "the take-up", taken)
				giveUp()
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

// TestASiteThatDiedWithoutAPlugin is told so, and the session goes on.
func TestASiteThatDiedWithoutAPlugin(t *testing.T) {
	v := survive(t)
	tx := transactionAt(t, v.session, "/tx", recipes.OwnNodes)
	must.Do(t, tx.Begin(ctx(t), nil, "it"))
	it := must.Get(tx.Join(ctx(t), "it"))(t)
	v.suspend()
	v.remove("/tx/s_it")
	v.goOn()
	if err := it.Vote(ctx(t), recipes.VoteCommit); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrNoTransaction) || strings.Contains(err.Error(), "membership") {
		t.Errorf("its vote: %v", err)
	}
	if d, err := tx.Coordinate(ctx(t)); err != nil || d.Commit {
		t.Errorf("decided %+v, %v", d, err)
	}
	must.Report(t, v.session.Err())
}
