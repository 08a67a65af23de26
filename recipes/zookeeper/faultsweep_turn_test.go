package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// The sweep of faultsweep_test.go over locks and elections.

// world is the stage of one case.
type world struct {
	t        *testing.T
	strategy recipes.Strategy
	victim   recipes.Session
	other    recipes.Session
	holders  atomic.Int32
	tokens   atomic.Int64
}

// granted checks that nobody else is granted, until the returned function is
// called, and that tokens grow.
func (w *world) granted(g recipes.Grant) (done func()) {
	if n := w.holders.Add(1); n != 1 {
		w.t.Errorf("%d are granted at a time", n)
	}
	if last := w.tokens.Swap(int64(g.Token())); last >= int64(g.Token()) {
		w.t.Errorf("token %d after %d", g.Token(), last)
	}
	return func() { w.holders.Add(-1) }
}

// turn takes a turn on a session: acquire or campaign, act, give back.
type turn func(ctx context.Context, w *world, s recipes.Session, joined func(recipes.Place)) error

func lockTurn(ctx context.Context, w *world, s recipes.Session, joined func(recipes.Place)) error {
	l, err := s.Lock(sweepPath, recipes.LockConfig{Strategy: w.strategy, Data: []byte("who"), Joined: joined})
	if err != nil {
		return err
	}
	hold, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	done := w.granted(hold)
	writeErr := guarded(ctx, hold)
	done()
	return errors.Join(writeErr, giveBack(hold.Release))
}

func tryTurn(ctx context.Context, w *world, s recipes.Session, joined func(recipes.Place)) error {
	l, err := s.Lock(sweepPath, recipes.LockConfig{Strategy: w.strategy, Joined: joined})
	if err != nil {
		return err
	}
	hold, err := l.TryAcquire(ctx)
	if errors.Is(err, recipes.ErrContended) && !errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	w.granted(hold)()
	return giveBack(hold.Release)
}

func electionTurn(ctx context.Context, w *world, s recipes.Session, joined func(recipes.Place)) error {
	e, err := s.Election(sweepPath, recipes.ElectionConfig{Strategy: w.strategy, Joined: joined})
	if err != nil {
		return err
	}
	leadership, err := e.Campaign(ctx, []byte("me"))
	if err != nil {
		return err
	}
	done := w.granted(leadership)
	ackErr := guardedError(leadership.Acknowledge(ctx, []byte("done")))
	done()
	return errors.Join(ackErr, giveBack(leadership.Resign))
}

// guarded writes; its outcome may be unknown, which is an answer.
func guarded(ctx context.Context, g recipes.Grant) error {
	return guardedError(g.Write(ctx, recipes.Create(sweepPath+"/data", nil), recipes.Delete(sweepPath+"/data", recipes.AnyVersion)))
}

func guardedError(err error) error {
	if errors.Is(err, recipes.ErrUnknownOutcome) {
		return nil
	}
	return err
}

// giveBack releases with a context of its own: that the victim was cancelled
// does not mean that it may keep what it has.
func giveBack(release func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	err := release(ctx)
	if errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrSessionLost) {
		return fmt.Errorf("release lost the hold of a session that lives: %w", err)
	}
	return err
}

// A turnAct is what the victim meets when its turn begins.
type turnAct struct {
	name      string
	turn      turn
	contended bool
	others    turn // of other contenders for the same
}

var turnActs = []turnAct{
	{"lock/free", lockTurn, false, lockTurn},
	{"lock/contended", lockTurn, true, lockTurn},
	{"try/free", tryTurn, false, lockTurn},
	{"try/contended", tryTurn, true, lockTurn},
	{"election/free", electionTurn, false, electionTurn},
	{"election/contended", electionTurn, true, electionTurn},
}

// turnScenarios are the acts with each strategy.
func turnScenarios(strategies []recipes.Strategy, acts []turnAct) []scenario {
	var all []scenario
	for _, strategy := range strategies {
		for _, a := range acts {
			all = append(all, scenario{string(strategy) + "/" + a.name, func(t *testing.T, at int64, f fault) int64 {
				return sweepTurn(t, strategy, a, at, f)
			}})
		}
	}
	return all
}

func TestFaultSweep(t *testing.T) {
	sweepFaults(t, "lock and election", 4, turnScenarios(recipes.Strategies(), turnActs))
}

// ahead has the other session hold the lock, or lead, until release.
func (w *world) ahead(ctx context.Context, leads bool) (release func() error, token recipes.Token) {
	if leads {
		e := must[recipes.Election](w.t)(w.other.Election(sweepPath, recipes.ElectionConfig{}))
		l := must[recipes.Leadership](w.t)(e.Campaign(ctx, nil))
		done := w.granted(l)
		return func() error { done(); return l.Resign(ctx) }, l.Token()
	}
	h := must[recipes.Hold](w.t)(must[recipes.Lock](w.t)(w.other.Lock(sweepPath, recipes.LockConfig{})).Acquire(ctx))
	done := w.granted(h)
	return func() error { done(); return h.Release(ctx) }, h.Token()
}

// sweepTurn runs one case.
func sweepTurn(t *testing.T, strategy recipes.Strategy, a turnAct, at int64, f fault) int64 {
	srv := embedded(t)
	w := &world{t: t, strategy: strategy, victim: open(t, srv), other: open(t, srv)}
	ctx := bounded(t)
	victimCtx, cancel := context.WithCancel(ctx)
	defer cancel()

	requests := f.strike(srv, w.victim, at, cancel)

	// In a contended case the other holds until the victim stands in line, or
	// has given up.
	victimDone := make(chan error, 1)
	joined := make(chan struct{})
	runVictim := func() {
		victimDone <- a.turn(victimCtx, w, w.victim, func(recipes.Place) { close(joined) })
	}
	var err error
	if a.contended {
		release, token := w.ahead(ctx, strings.HasPrefix(a.name, "election"))
		w.tokens.Store(int64(token))
		go runVictim()
		select {
		case <-joined:
		case err := <-victimDone:
			victimDone <- err
		case <-ctx.Done():
			t.Fatal("the victim hangs before it has joined")
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
	} else {
		go runVictim()
	}
	select {
	case err = <-victimDone:
	case <-ctx.Done():
		t.Fatal("the victim hangs")
	}
	if !f.allows(err) {
		t.Errorf("the victim's turn ended with %v", err)
	}

	// Another contender gets its turn, though the victim's session is not
	// closed: nothing of the victim stands in line.
	if err := a.others(ctx, w, w.other, nil); err != nil {
		t.Errorf("after the fault another contender: %v", err)
	}
	closeErr := w.victim.Close(ctx)
	if lost := w.victim.Err(); closeErr != nil && errors.Is(lost, recipes.ErrClosed) {
		t.Errorf("close: %v", closeErr)
	}
	for _, n := range srv.Tree() {
		name, inside := strings.CutPrefix(n.Path, sweepPath+"/")
		container := name == "acks" || strings.HasPrefix(name, "guards-") && !strings.Contains(name, "/")
		if inside && name != "data" && !container {
			t.Errorf("left behind: %s of session %#x", n.Path, n.Stat.EphemeralOwner)
		}
	}
	return requests.Load()
}
