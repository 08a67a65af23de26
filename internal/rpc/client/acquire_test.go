package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// resumable returns a session that continues when its plugin ends, and a constructor of
// generations.
func resumable(t *testing.T) (*session, func() *generation) {
	c := Unconnected()
	t.Cleanup(c.Close)
	p := c.Connect(nil, nil, func(context.Context) bool { return true })
	opened := &pb.Opened{Ticket: []byte("ticket"), Timeout: durationpb.New(time.Hour), State: pb.State_STATE_CONNECTED}
	of := func() *generation { return newGeneration(p, nil, func() {}, nil, opened) }
	return newSession(c, recipes.SessionConfig{}, of(), opened), of
}

// A waiter takes its turn, its plugin ends, and the next plugin cannot resume sessions. The
// waiter must not take that for a refusal of its place: it would then call again for ever.
func TestAWaiterOfASessionThatIsRefusedGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, of := resumable(t)
		s.mu.Lock()
		s.serve(nil)
		s.mu.Unlock()
		next, got := of(), make(chan error, 1)
		go func() {
			_, err := recipe{s: s}.acquire(t.Context(), "lock", nil, func(_ context.Context, _ string, resumed *pb.Grant) (answer, error) {
				if resumed.GetZnode() != "/l/lock-1" {
					t.Errorf("it resumes %v", resumed)
				}
				close(next.ended)
				return nil, status.Error(codes.Unavailable, "the connection has ended")
			})
			got <- err
		}()
		synctest.Wait()
		s.mu.Lock()
		for _, w := range s.waiters {
			w.znode = "/l/lock-1"
		}
		s.mu.Unlock()
		s.notResumed(next)
		synctest.Wait()
		s.lose(fmt.Errorf("%w: %w", recipes.ErrPluginLost, recipes.ErrUnsupported))
		if err := <-got; !errors.Is(err, recipes.ErrPluginLost) {
			t.Errorf("it ends with %v", err)
		}
	})
}

// releases counts the calls of Release, and fails the first.
type releases struct {
	pb.GrantServiceClient
	at []time.Time
}

func (r *releases) Release(context.Context, *pb.ReleaseRequest, ...grpc.CallOption) (*pb.ReleaseResponse, error) {
	if r.at = append(r.at, time.Now()); len(r.at) == 1 {
		return nil, status.Error(codes.Unavailable, "the connection has ended")
	}
	return &pb.ReleaseResponse{}, nil
}

// A release that gRPC has failed is sent again at once, because the next contender waits for
// it. The client does not wait to learn whether the plugin has ended.
func TestAReleaseIsRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := resumable(t)
		sent := new(releases)
		s.grants = sent
		must.Do(t, (&remoteGrant{s: s, id: "1", lost: make(chan struct{})}).releaseGrant(t.Context()))
		if len(sent.at) != 2 || !sent.at[1].Equal(sent.at[0]) {
			t.Errorf("it was sent at %v", sent.at)
		}
	})
}
