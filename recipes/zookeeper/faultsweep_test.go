package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The fault sweep runs a scenario once to count the requests that its victim
// makes, and then once more for each of those requests and each fault, with the
// fault at that request. After every case: nobody was granted twice, nothing
// hangs, another contender gets its turn while the victim's session lives, and
// no znode of the victim is left.

// faults are what can go wrong at a request, with what the victim may then see.
var faults = []struct {
	name string
	at   func(srv *zkserver.Server, session int64, cancel context.CancelFunc) zkserver.Fault
	may  []error // nil: it may also succeed
}{
	{"connection lost before the request", func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{CloseBefore: true}
	}, []error{nil}},
	{"reply lost after the commit", func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{DropReply: true}
	}, []error{nil}},
	{"connection lost after the reply", func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{CloseAfter: true}
	}, []error{nil}},
	{"session expired before the request", func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{ExpireBefore: true}
	}, []error{nil, recipes.ErrSessionLost}},
	{"session expired after the commit", func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{ExpireAfter: true}
	}, []error{nil, recipes.ErrSessionLost}},
	{"cancelled at the request", func(_ *zkserver.Server, _ int64, cancel context.CancelFunc) zkserver.Fault {
		cancel()
		return zkserver.Fault{}
	}, []error{nil, context.Canceled}},
	{"cancelled, and the connection lost before the request", func(_ *zkserver.Server, _ int64, cancel context.CancelFunc) zkserver.Fault {
		cancel()
		return zkserver.Fault{CloseBefore: true}
	}, []error{nil, context.Canceled}},
	{"cancelled, and the reply lost after the commit", func(_ *zkserver.Server, _ int64, cancel context.CancelFunc) zkserver.Fault {
		cancel()
		return zkserver.Fault{DropReply: true}
	}, []error{nil, context.Canceled}},
}

const sweepPath = "/parent/line"

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

// scenarios are what the victim meets when its turn begins.
var scenarios = []struct {
	name      string
	turn      turn
	contended bool
}{
	{"lock/free", lockTurn, false},
	{"lock/contended", lockTurn, true},
	{"try/free", tryTurn, false},
	{"try/contended", tryTurn, true},
	{"election/free", electionTurn, false},
	{"election/contended", electionTurn, true},
}

func TestFaultSweep(t *testing.T) {
	var cases atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for _, strategy := range recipes.Strategies() {
			for _, sc := range scenarios {
				t.Run(string(strategy)+"/"+sc.name, func(t *testing.T) {
					t.Parallel()
					requests := sweepCase(t, strategy, sc.turn, sc.contended, 0, nil, nil)
					if requests < 4 {
						t.Fatalf("the clean run made only %d requests", requests)
					}
					for at := int64(1); at <= requests; at++ {
						for _, f := range faults {
							t.Run(fmt.Sprintf("%s %d", f.name, at), func(t *testing.T) {
								cases.Add(1)
								sweepCase(t, strategy, sc.turn, sc.contended, at, f.at, f.may)
							})
						}
					}
				})
			}
		}
	})
	fmt.Printf("fault sweep: %d cases\n", cases.Load())
}

// sweepCase runs one case and returns the number of requests that the victim
// made.
func sweepCase(t *testing.T, strategy recipes.Strategy, victimTurn turn, contended bool, at int64,
	fault func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault, may []error) int64 {
	srv := embedded(t)
	w := &world{t: t, strategy: strategy, victim: open(t, srv), other: open(t, srv)}
	ctx := bounded(t)
	victimCtx, cancel := context.WithCancel(ctx)
	defer cancel()

	var requests atomic.Int64
	id := w.victim.ID()
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID != id || requests.Add(1) != at {
			return zkserver.Fault{}
		}
		return fault(srv, id, cancel)
	})

	// In a contended case the other holds until the victim stands in line, or
	// has given up.
	victimDone := make(chan error, 1)
	joined := make(chan struct{})
	runVictim := func() {
		victimDone <- victimTurn(victimCtx, w, w.victim, func(recipes.Place) { close(joined) })
	}
	var err error
	if contended {
		l := must[recipes.Lock](t)(w.other.Lock(sweepPath, recipes.LockConfig{}))
		e := must[recipes.Election](t)(w.other.Election(sweepPath, recipes.ElectionConfig{}))
		// Both recipes stand in their own line of the path; hold both.
		hold := must[recipes.Hold](t)(l.Acquire(ctx))
		leadership := must[recipes.Leadership](t)(e.Campaign(ctx, nil))
		done := w.granted(hold)
		w.tokens.Store(int64(leadership.Token()))
		go runVictim()
		select {
		case <-joined:
		case err := <-victimDone:
			victimDone <- err
		case <-ctx.Done():
			t.Fatal("the victim hangs before it has joined")
		}
		done()
		if err := errors.Join(hold.Release(ctx), leadership.Resign(ctx)); err != nil {
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
	if at == 0 && err != nil {
		t.Fatalf("clean run: %v", err)
	}
	allowed := at == 0
	for _, e := range may {
		allowed = allowed || e == nil && err == nil || e != nil && errors.Is(err, e)
	}
	if !allowed {
		t.Errorf("the victim's turn ended with %v", err)
	}

	// Another contender gets its turn, though the victim's session is not
	// closed: nothing of the victim stands in line.
	for _, turn := range []turn{lockTurn, electionTurn} {
		if err := turn(ctx, w, w.other, nil); err != nil {
			t.Errorf("after the fault another contender: %v", err)
		}
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
