package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
