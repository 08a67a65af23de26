package client

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestWaitThatHasEndedIsForgotten: nothing is kept of it.
func TestWaitThatHasEndedIsForgotten(t *testing.T) {
	c := Unconnected()
	generation := &generation{plugin: c.Connect(nil, nil, nil), hangUp: func() {}}
	s := newSession(c, recipes.SessionConfig{}, generation, &pb.Opened{Timeout: durationpb.New(time.Minute)})
	_, _ = recipe{s: s}.acquire(t.Context(), "lock", func(recipes.Place) {}, func(context.Context, string, *pb.Grant) (answer, error) {
		if len(s.waiters) != 1 {
			t.Error("the call waits for no place")
		}
		return nil, wire.ToStatus(recipes.ErrContended, nil)
	})
	if len(s.waiters) > 0 {
		t.Errorf("%d are remembered", len(s.waiters))
	}
}
