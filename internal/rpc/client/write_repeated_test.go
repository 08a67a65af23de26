package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/feed"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
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

// While no server can be reached, the error of a call whose caller stops waiting says so,
// once. The known outcome of the call is kept.
func TestAnInterruptedCallSaysOnceThatNoServerIsReached(t *testing.T) {
	s := newSession(new(Client), recipes.SessionConfig{}, &generation{plugin: new(Plugin), cancelStream: func() {}, state: recipes.Suspended}, &pb.Opened{
		Timeout: durationpb.New(time.Minute),
	})
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

// The loss of the session adds ErrNotHeld to a grant's error once.
func TestNotHeldIsInTheErrorOnce(t *testing.T) {
	both := fmt.Errorf("%w: %w", recipes.ErrNotHeld, recipes.ErrExpired)
	for err, same := range map[error]bool{nil: true, recipes.ErrContended: true, both: true, recipes.ErrExpired: false} {
		got := notHeld(err)
		if same != (got == err) || errors.Is(err, recipes.ErrSessionLost) != errors.Is(got, recipes.ErrNotHeld) {
			t.Errorf("%v became %v", err, got)
		}
	}
}

// A session that is opened while the client closes does not wait for a connection that is
// never run.
func TestCallsOfAClosedClientAreSettled(t *testing.T) {
	conn := must.Get(grpc.NewClient("passthrough:///nowhere", append(DialOptions(nil, nil), grpc.WithTransportCredentials(insecure.NewCredentials()))...))(t)
	defer conn.Close()
	c := New(conn, func(ctx context.Context) (net.Conn, error) { return nil, ctx.Err() })
	c.Close()
	calls := c.Plugin().callConnection()
	select {
	case <-calls.Settled():
	default:
		t.Error("not settled")
	}
}

// The loss of a session does not hide the plugin's answer to the call.
func TestLossKeepsTheOutcome(t *testing.T) {
	for _, outcome := range []error{recipes.ErrUnknownOutcome, recipes.ErrNotHeld} {
		if err := keepOutcome(recipes.ErrExpired, fmt.Errorf("write: %w", outcome)); !errors.Is(err, outcome) || !errors.Is(err, recipes.ErrExpired) {
			t.Errorf("%v: %v", outcome, err)
		}
	}
	if err := keepOutcome(recipes.ErrExpired, recipes.ErrContended); err != recipes.ErrExpired {
		t.Errorf("contended: %v", err)
	}
}
