package server

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// lostGrant is a grant that has ended with an error.
type lostGrant struct {
	recipes.Grant
	err error
}

func (g lostGrant) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (g lostGrant) Err() error { return g.err }

// A grant that ended although its znode may exist is reported, and the host can still release it.
func TestAReportedLossLeavesAGrantThatCanBeReleased(t *testing.T) {
	for _, end := range []struct {
		err   error
		known bool
	}{{recipes.ErrNotHeld, true}, {recipes.ErrRevoked, false}, {recipes.ErrRemoved, false}} {
		ss, lost, send := &session{ctx: t.Context()}, 0, func() {}
		ss.out.limit = MaxUnsent
		ss.out.start(func(*pb.OpenResponse) error { lost++; return nil }, nil, nil, func(work func()) { send = work })
		ts := newAcquisitions(ss, 1)
		c := must.Get(ts.callWith(t.Context(), requestOf("it"), func(context.Context, func(recipes.Place)) (*grant, error) {
			return &grant{Grant: lostGrant{err: end.err}}, nil
		}))(t)
		ts.watch(c)
		ss.tasks.Wait()
		send()
		for i := range remembered {
			ended := &acquisition{id: string(rune('a' + i)), done: make(chan struct{}), grant: &grant{Grant: stub{}}}
			close(ended.done)
			ts.all[ended.id] = ended
			ts.finished(ended)
		}
		if _, err := ts.granted("it"); (err == nil) != end.known || lost != 1 {
			t.Errorf("%v: reported %d times; then the grant is %v", end.err, lost, err)
		}
	}
}

// An acquisition may arrive after it was abandoned. It does not start, and its caller gets the
// reason.
func TestAnAcquisitionThatWasAbandonedBeforeItArrivedIsNotBegun(t *testing.T) {
	ts := newAcquisitions(&session{ctx: t.Context()}, 1)
	ts.abandon("it")
	_, err := ts.callWith(t.Context(), requestOf("it"), func(context.Context, func(recipes.Place)) (*grant, error) {
		t.Error("it was begun")
		return &grant{}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the call returned %v", err)
	}
}
