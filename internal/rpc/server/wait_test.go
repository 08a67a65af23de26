package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Abandon also ends a call that it has overtaken, and no other call.
func TestAbandonEndsACallThatAsksForNoGrant(t *testing.T) {
	ts := newAcquisitions(nil, 1)
	begin := func(id string) context.Context {
		ctx, end := ts.abandonable(t.Context(), id)
		t.Cleanup(end)
		return ctx
	}
	one, other, none := begin("one"), begin("other"), begin("")
	ts.abandon("one")
	ts.abandon("late")
	late := begin("late")
	for name, ctx := range map[string]context.Context{"the abandoned": one, "the late": late} {
		if ctx.Err() == nil {
			t.Errorf("%s call continues", name)
		}
	}
	for name, ctx := range map[string]context.Context{"another": other, "without an id": none} {
		if ctx.Err() != nil {
			t.Errorf("%s: %v", name, ctx.Err())
		}
	}
}

// A session keeps nothing of an ended call.
func TestCallThatHasEndedIsForgotten(t *testing.T) {
	ts := newAcquisitions(nil, 1)
	_, end := ts.abandonable(t.Context(), "one")
	end()
	if len(ts.cancels) > 0 {
		t.Errorf("%d are remembered", len(ts.cancels))
	}
}

// Abandon undoes a call once, even if it arrives before the call has received its result.
// Only the latest calls can be undone.
func TestAbandonUndoesWhatHasSucceeded(t *testing.T) {
	ss := new(session)
	ts := newAcquisitions(ss, 1)
	var mu sync.Mutex // tasks run concurrently
	undone := make(map[string]int)
	succeed := func(ctx context.Context, id string) error {
		return ts.undoable(ctx, id, func() {
			mu.Lock()
			defer mu.Unlock()
			undone[id]++
		})
	}
	ctx, end := ts.abandonable(t.Context(), "running")
	ts.abandon("running")
	if err := succeed(ctx, "running"); !errors.Is(err, context.Canceled) || !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Errorf("the answer of a call that is undone: %v", err)
	}
	end()
	ctx, end = ts.abandonable(t.Context(), "returning")
	must.Do(t, succeed(ctx, "returning"))
	ts.abandon("returning")
	end()
	must.Do(t, succeed(t.Context(), "answered"))
	for range 2 {
		ts.abandon("answered")
		ss.tasks.Wait()
	}
	must.Do(t, succeed(t.Context(), ""))
	ts.abandon("")
	must.Do(t, succeed(t.Context(), "oldest"))
	for i := range remembered {
		must.Do(t, succeed(t.Context(), fmt.Sprint(i)))
	}
	ts.abandon("oldest")
	ts.abandon("0")
	ss.tasks.Wait()
	if want := map[string]int{"running": 1, "returning": 1, "answered": 1, "0": 1}; !maps.Equal(undone, want) {
		t.Errorf("undone %v; want %v", undone, want)
	}
	if len(ts.undos) > remembered || len(ts.undoIDs) > remembered {
		t.Errorf("%d are remembered", len(ts.undos))
	}
}

// cutting is a session whose transactions are resumed just before the connection of the call
// breaks.
type cutting struct {
	recipes.Client
	breaks     func()
	coordinate chan struct{}
}

func (c cutting) Transaction(string, recipes.TransactionConfig) (recipes.Transaction, error) {
	return resumedTransaction{c: c}, nil
}

type resumedTransaction struct {
	recipes.Transaction
	c cutting
}

func (t resumedTransaction) BeginAs(context.Context, []byte, ...string) (string, error) {
	t.c.breaks()
	return "it", nil
}

func (t resumedTransaction) ResumeCoordinator(context.Context, string) error {
	t.c.breaks()
	return nil
}

func (t resumedTransaction) ResumeSite(context.Context, string, string) (recipes.Site, error) {
	t.c.breaks()
	return joinedSite{}, nil
}

func (t resumedTransaction) Coordinate(context.Context) (recipes.Decision, error) {
	close(t.c.coordinate)
	return recipes.Decision{}, nil
}

func (t resumedTransaction) CoordinateAs(ctx context.Context, _ string) (recipes.Decision, error) {
	return t.Coordinate(ctx)
}

type joinedSite struct{ recipes.Site }

func (joinedSite) Payload() []byte { return nil }

// A resumed role is kept for the repeated call. A Begin whose answer was lost is undone.
func TestAResumeOfATransactionThatIsCutOffIsNotUndone(t *testing.T) {
	for _, resumed := range []string{"", "it"} {
		ctx, cancel := context.WithCancel(t.Context())
		s, fake := New(Config{}), cutting{breaks: cancel, coordinate: make(chan struct{})}
		ss := &session{ctx: t.Context(), Client: fake, resumption: resumption{resumed: true}}
		ss.acquisitions = newAcquisitions(ss, 1)
		s.sessions[""] = ss
		_, err := service{Server: s}.BeginTransaction(ctx, &pb.BeginTransactionRequest{RequestId: "1", Resumed: resumed})
		if errors.Is(err, recipes.ErrUnknownOutcome) != (resumed == "") {
			t.Error(err)
		}
		if resumed != "" {
			_, _ = service{Server: s}.JoinTransaction(ctx, &pb.JoinTransactionRequest{RequestId: "2", Resumed: resumed})
		}
		ss.tasks.Wait()
		select {
		case <-fake.coordinate:
			if resumed != "" {
				t.Error("the coordinator's role was ended")
			}
		default:
			if resumed == "" {
				t.Error("the coordinator's role was kept")
			}
		}
		if _, ok := ss.memberships.get(resumed); resumed != "" && !ok {
			t.Error("the membership was forgotten")
		}
		if resumed != "" {
			ss.acquisitions.abandon("1")
			ss.acquisitions.abandon("2")
			ss.tasks.Wait()
			if _, ok := ss.memberships.get(resumed); ok {
				t.Error("the membership was abandoned, and stays")
			}
			if _, err := (service{Server: s}).FinishSite(t.Context(), &pb.FinishSiteRequest{Membership: resumed}); !errors.Is(err, recipes.ErrNoTransaction) {
				t.Errorf("an abandoned site has finished: %v", err)
			}
		}
	}
}

// A recipe that cannot be resumed refuses the host that wants to resume it.
func TestATransactionThatCannotBeResumedIsRefused(t *testing.T) {
	ss, plain := new(session), new(struct{ recipes.Transaction })
	_, begin := ss.beginTransaction(t.Context(), plain, &pb.BeginTransactionRequest{Resumed: "it"})
	_, coordinate := coordinate(t.Context(), plain, &pb.CoordinateTransactionRequest{Transaction: "it"})
	_, _, join := ss.joinTransaction(t.Context(), plain, &pb.JoinTransactionRequest{Resumed: "it"})
	for _, err := range []error{begin, coordinate, join} {
		if !errors.Is(err, errNotResumed) {
			t.Error(err)
		}
	}
}

// The time is virtual.
func TestEarlyLeavesTimeForTheAnswer(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		10 * time.Second:       10*time.Second - answerTime,
		400 * time.Millisecond: 300 * time.Millisecond,
	} {
		zktest.Bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), given)
			defer cancel()
			ctx, done := withTimeToAnswer(ctx)
			defer done()
			begun := time.Now()
			<-ctx.Done()
			if d := time.Since(begun); d != want {
				t.Errorf("with %v left, the call has %v; want %v", given, d, want)
			}
		})
	}
	ctx, done := withTimeToAnswer(t.Context())
	defer done()
	if _, ends := ctx.Deadline(); ends {
		t.Error("a context without a deadline got one")
	}
}
