package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// deed is something that a session does, or waits for.
type deed struct {
	name string
	// prepare is undisturbed. ctx ends when something hangs.
	prepare func(l *late, ctx context.Context) doing
}

// doing is how a deed is done, after its preparation.
type doing struct {
	act func(context.Context) error
	// happened reports whether it was carried out. Only an error that matches
	// ErrUnknownOutcome may leave that open. nil: there is nothing that the caller would
	// have to find out, and the error never matches it.
	happened func() bool
	// harmless: it may be done again whatever has become of it, so its error need not say
	// that it has happened.
	harmless bool
	// refused is what it is told when it is done again, and had happened before.
	refused error
	stays   bool // what the first call has come to is what each later one returns
	once    bool // it is not done again when it had happened
	// end gives back what it has got. nil: there is nothing, or, if holds, it is kept.
	end   func() error
	holds bool
	// after is what other sessions then do; nil: nothing.
	after func() error
}

// A deed of which a request was disturbed is done, or the error says what has happened.
// What has failed leaves nothing that others wait for, and can be done again.
func TestADisturbedDeedIsDoneOrSaysWhy(t *testing.T) {
	var cases atomic.Int64
	t.Run("deeds", func(t *testing.T) {
		for _, o := range slices.Concat(ofOperations(), disturbedLines(), disturbedRevocations(), disturbedMeetings(), disturbedQueues(), disturbedKeys(), disturbedTransactions()) {
			t.Run(o.name, func(t *testing.T) {
				t.Parallel()
				var left remains
				disturb(t, &cases, func(t *testing.T, d disturbance, at int64) int64 {
					return o.disturbed(t, d, at, &left)
				})
			})
		}
	})
	fmt.Printf("disturbed deeds: %d cases\n", cases.Load())
}

// ofOperations are the deeds of TestAnUnknownOutcomeIsToldWithWhatHasEnded. Two are left
// out, which leave something to be done: there are others for these.
func ofOperations() (all []deed) {
	for _, o := range append(dataOperations(), standingOperations()...) {
		if o.name == "receive, after a dead letter" || o.name == "hand a lock off" {
			continue
		}
		all = append(all, deed{o.name, func(l *late, ctx context.Context) doing {
			do := doing{act: o.prepare(l), once: true, holds: true}
			if o.happened != nil {
				do.happened = func() bool { return o.happened(l) }
			}
			return do
		}})
	}
	return all
}

// disturbed does it with the disturbance at that request, and once more if it has failed.
// left is what remains of an undisturbed run.
func (o deed) disturbed(t *testing.T, d disturbance, at int64, left *remains) (requests int64) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		t.Cleanup(func() { srv.Close() })
		ctx, end := context.WithTimeout(t.Context(), patience)
		t.Cleanup(end)
		l := &late{T: t, srv: srv, victim: openVirtual(t, srv), other: openVirtual(t, srv)}
		do := o.prepare(l, ctx)
		calm()
		owned := l.owned()

		acting, cancel := context.WithCancel(ctx)
		defer cancel()
		sent := d.strike(srv, l.victim, at, cancel)
		err := do.act(acting)
		requests = sent.Load()
		calm()
		srv.SetFault(nil)
		cancel()
		if at == 0 && err != nil {
			t.Fatalf("undisturbed: %v", err)
		}
		do.judge(t, d, err)
		if err != nil && (do.happened == nil || !do.happened()) {
			for _, path := range l.owned() {
				if !slices.Contains(owned, path) {
					t.Errorf("left behind: %s", path)
				}
			}
		}
		if err != nil {
			err = do.again(ctx, t)
		}
		if err == nil && do.end != nil {
			if err := do.end(); err != nil {
				t.Errorf("at its end: %v", err)
			}
		}
		if do.after != nil {
			if err := do.after(); err != nil {
				t.Errorf("then another: %v", err)
			}
		}
		if do.holds {
			return
		}
		now := remaining(srv)
		if at == 0 {
			*left = now
		}
		now.compare(t, d, *left)
	})
	return requests
}

// owned are the ephemeral znodes of the victim. Receipts, and what guards the writes of a
// hold, keep nobody waiting.
func (l *late) owned() (paths []string) {
	for _, n := range l.srv.Tree() {
		if n.Stat.EphemeralOwner == l.victim.ID() && !strings.Contains(n.Path, "-receipt-") && !strings.Contains(n.Path, "-guard-") {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// judge compares what the caller was told with what is so.
func (do doing) judge(t *testing.T, d disturbance, err error) {
	t.Helper()
	if err == nil {
		if do.happened != nil && !do.happened() {
			t.Error("it has not happened, and there is no error")
		}
		return
	}
	if !d.may(err) {
		t.Errorf("the error is %v", err)
	}
	for _, never := range []error{recipes.ErrNotHeld, recipes.ErrSessionLost, recipes.ErrUnavailable, recipes.ErrInternal} {
		if errors.Is(err, never) {
			t.Errorf("the session and what it holds stand, and the error is %v", err)
		}
	}
	unknown, happened := errors.Is(err, recipes.ErrUnknownOutcome), do.happened != nil && do.happened()
	switch {
	case unknown && !d.cancels && !happened: // or its result could not be read
		t.Errorf("every request was answered, and the error is %v", err)
	case unknown && do.happened == nil:
		t.Errorf("nothing is unknown to the caller, and the error is %v", err)
	case !unknown && happened && !do.harmless:
		t.Errorf("it has happened, and the error is %v", err)
	}
}

// again does once more, undisturbed, what has failed.
func (do doing) again(ctx context.Context, t *testing.T) error {
	t.Helper()
	happened := do.happened != nil && do.happened()
	if happened && do.once {
		return nil
	}
	err := do.act(ctx)
	if do.stays && errors.Is(err, recipes.ErrThrottled) {
		return err
	}
	if happened && do.refused != nil {
		if !errors.Is(err, do.refused) {
			t.Errorf("again: %v; want %v", err, do.refused)
		}
		return do.refused
	}
	if err != nil {
		t.Errorf("again: %v", err)
	}
	return err
}
