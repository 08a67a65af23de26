package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/feed"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The call's first plugin has ended, and may have carried it out. The next plugin's answer
// counts if it answers the earlier call.
func TestARepeatedCallWhoseOutcomeIsUnknown(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		what    string
		then    error
		unknown bool
	}{
		{"done", nil, false},
		{"refused", wire.ToStatus(recipes.ErrVoted, nil), false},
		{"not served", notServed(canceled), true},
		{"not reached", wire.ToStatus(recipes.ErrUnavailable, nil), true},
		{"given up", wire.ToStatus(context.Canceled, nil), true},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over, end := context.WithCancel(t.Context())
				defer end()
				s := &session{resumable: true, clock: newClock(time.Hour), over: over, events: feed.New(recipes.Event{State: recipes.Connected})}
				first, next := &generation{plugin: new(Plugin), ended: make(chan struct{})}, &generation{plugin: new(Plugin)}
				s.serving.Store(first)
				calls := 0
				err := s.write(t.Context(), repeated(answers), func(context.Context) error {
					if calls++; calls == 1 {
						s.serving.Store(next)
						close(first.ended)
						return status.Error(codes.Unavailable, "the connection broke")
					}
					return c.then
				})
				if calls != 2 {
					t.Errorf("%d calls", calls)
				}
				if errors.Is(err, unanswered{}) != c.unknown || (err == nil) != (c.then == nil) {
					t.Errorf("%v, then %v", c.then, err)
				}
				if c.unknown && !errors.Is(s.explainWrite(t.Context(), "vote", err), recipes.ErrUnknownOutcome) {
					t.Errorf("explained as %v", s.explainWrite(t.Context(), "vote", err))
				}
			})
		})
	}
}

// The session is lost while no plugin serves it.
func TestAWriteThatWasNotSentHasNoUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Unconnected()
		s := newSession(c, recipes.SessionConfig{}, &generation{plugin: c.Connect(nil, nil, nil), cancelStream: func() {}}, &pb.Opened{Timeout: durationpb.New(time.Minute)})
		s.serving.Store(nil)
		result := make(chan error)
		go func() {
			_, err := write(t.Context(), recipe{s: s, what: "it"}, once, func(context.Context, int, ...grpc.CallOption) (int, error) {
				t.Error("it was sent")
				return 0, nil
			}, 0, nothing)
			result <- err
		}()
		synctest.Wait()
		s.lose(recipes.ErrExpired)
		if err := <-result; !errors.Is(err, recipes.ErrExpired) || errors.Is(err, recipes.ErrUnknownOutcome) {
			t.Error(err)
		}
	})
}
