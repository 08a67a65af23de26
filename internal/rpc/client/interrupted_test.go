package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// While no server can be reached, a call that its caller stops waiting for says so, and
// says it once. What is known of its outcome is not made less.
func TestAnInterruptedCallSaysOnceThatNoServerIsReached(t *testing.T) {
	s := newSession(new(Client), nil, func() {}, &pb.Opened{
		Timeout: durationpb.New(time.Minute), State: pb.State_STATE_SUSPENDED,
	}, nil)
	for _, whole := range []error{
		fmt.Errorf("%w: %w", recipes.ErrUnavailable, context.Canceled),
		fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, context.Canceled),
	} {
		if err := s.interrupted(whole); err != whole {
			t.Errorf("%q became %q", whole, err)
		}
	}
	err := s.interrupted(context.Canceled)
	if !errors.Is(err, recipes.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("suspended: %v", err)
	}
	s.events.Set(recipes.Event{State: recipes.Connected})
	if err := s.interrupted(context.Canceled); err != context.Canceled {
		t.Errorf("connected: %v", err)
	}
}
