package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
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

// The call's first plugin has ended, and may have carried it out. The next plugin's answer is the
// result only if it also says what the earlier call did.
func TestARepeatedCallWhoseOutcomeIsUnknown(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		what    string
		then    error
		unknown bool
	}{
		{"done", nil, false},
		{"refused", wire.ToStatus(recipes.ErrVoted), false},
		{"not served", notServed(canceled), true},
		{"not reached", wire.ToStatus(recipes.ErrUnavailable), true},
		{"given up", wire.ToStatus(context.Canceled), true},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, of := resumable(t)
				first, next := s.latest(), of()
				calls := 0
				err := s.call(t.Context(), Repeated(Answers), func(context.Context) error {
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

// The plugin has ended while the call waited for its connection. So the next plugin makes the
// call, and its outcome is known.
func TestAWriteThatItsConnectionDidNotSendIsMadeByTheNextPlugin(t *testing.T) {
	for name, options := range map[string]Options{"once": AtMostOnce().Abandonable("1"), "repeated": Repeated(Answers)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, of := resumable(t)
				s.client.grants = nil // the call is not abandoned
				first, next, calls := s.latest(), of(), 0
				err := s.call(t.Context(), options, func(context.Context) error {
					if calls++; calls == 1 {
						s.serving.Store(next)
						close(first.ended)
					}
					return carry.UnsentError{Err: status.Error(codes.Unavailable, "the connection has ended")}
				})
				err = s.explainWrite(t.Context(), "vote", err)
				if calls != 2 || !errors.Is(err, recipes.ErrUnavailable) || errors.Is(err, recipes.ErrUnknownOutcome) {
					t.Errorf("%d calls, then %v", calls, err)
				}
			})
		})
	}
}

// The session is lost while no plugin serves it. A guarded write then matches ErrNotHeld too.
func TestAWriteThatWasNotSentHasNoUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(nil)
		s := newSession(c, recipes.SessionConfig{}, &generation{plugin: c.Connect(nil, nil, nil), cancelStream: func() {}}, &pb.Opened{Timeout: durationpb.New(time.Minute)})
		s.serving.Store(nil)
		sends := func(context.Context, int, ...grpc.CallOption) (int, error) {
			t.Error("it was sent")
			return 0, nil
		}
		plain, guarded := make(chan error), make(chan error)
		go func() {
			_, err := Write(t.Context(), s, "it", AtMostOnce(), sends, 0)
			plain <- err
		}()
		go func() {
			guarded <- WriteAs(t.Context(), &Grant{s: s, lost: make(chan struct{})}, "it", sends, 0)
		}()
		synctest.Wait()
		s.lose(recipes.ErrExpired)
		for held, result := range map[bool]chan error{false: plain, true: guarded} {
			err := <-result
			if !errors.Is(err, recipes.ErrExpired) || errors.Is(err, recipes.ErrUnknownOutcome) || errors.Is(err, recipes.ErrNotHeld) != held {
				t.Errorf("of a grant: %v: %v", held, err)
			}
		}
	})
}

// A call may return after Close. It must not start a goroutine then, because Close no longer
// waits for it.
func TestAClosedSessionStartsNothing(t *testing.T) {
	s, _ := resumable(t)
	s.lose(recipes.ErrExpired)
	must.Do(t, s.Close(t.Context()))
	if s.Spawn(func() {}) {
		t.Error("a goroutine was started")
	}
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

// A session that is opened while the client closes does not wait for a connection that is
// never run.
func TestCallsOfAClosedClientAreSettled(t *testing.T) {
	conn := must.Get(grpc.NewClient("passthrough:///nowhere", append(DialOptions(nil, nil), grpc.WithTransportCredentials(insecure.NewCredentials()))...))(t)
	defer conn.Close()
	c := New(nil)
	c.Use(c.Connect(conn, func(ctx context.Context) (net.Conn, error) { return nil, ctx.Err() }, nil), false)
	c.Close()
	calls := c.Plugin().callConnection()
	select {
	case <-calls.Settled():
	default:
		t.Error("not settled")
	}
}

// resumable returns a session that continues when its plugin ends, and a constructor of
// generations. Its plugin echoes heartbeats.
func resumable(t *testing.T) (*Session, func() *generation) {
	c := New(nil)
	t.Cleanup(c.Close)
	p := c.Connect(nil, nil, func(context.Context) bool { return true })
	opened := &pb.Opened{Ticket: []byte("ticket"), Timeout: durationpb.New(time.Hour), State: pb.State_STATE_CONNECTED}
	of := func() *generation { return newGeneration(p, nil, func() {}, p.callConnection(), opened) }
	s := newSession(c, recipes.SessionConfig{}, of(), opened)
	s.latest().stream = scriptedStream{s: s, echoes: true}
	return s, of
}

// scriptedStream echoes heartbeats, or not. Its only message comes after a pause.
type scriptedStream struct {
	stream
	s      *Session
	echoes bool
	pause  time.Duration
	last   *pb.OpenResponse
}

func (st scriptedStream) Send(m *pb.OpenRequest) error {
	if st.echoes {
		st.s.clock.echo(echo{number: m.GetBeat().GetNumber()}.message())
	}
	return nil
}

func (st scriptedStream) Recv() (*pb.OpenResponse, error) {
	time.Sleep(st.pause)
	return st.last, nil
}

// A busy machine may notice the end of a plugin long after a call to it has failed. The call
// waits for that, and is repeated. A plugin that still echoes heartbeats has not ended.
func TestAFailedCallWaitsForTheEndOfItsPlugin(t *testing.T) {
	for _, lives := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, of := resumable(t)
			first, calls, begun := s.latest(), 0, time.Now()
			first.stream = scriptedStream{s: s, echoes: lives}
			end := time.AfterFunc(time.Minute, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.serve(of())
				close(first.ended)
			})
			defer end.Stop()
			broken := status.Error(codes.Unavailable, "the connection broke")
			err := s.complete(t.Context(), Options{}, func(context.Context) error {
				if calls++; calls == 1 {
					return broken
				}
				return nil
			})
			took := time.Since(begun)
			if !lives && (err != nil || calls != 2 || took != time.Minute) {
				t.Errorf("%d calls, then %v after %v", calls, err, took)
			}
			if lives && (err != broken || took != causeTimeout) {
				t.Errorf("it ends with %v after %v", err, took)
			}
			if lives && (s.selectError(t.Context(), err, false) != err || time.Since(begun) != 2*causeTimeout) {
				t.Errorf("its error is clear after %v", time.Since(begun))
			}
		})
	}
}

// endingAcquire is a plugin that ends during Acquire.
type endingAcquire struct {
	pb.GrantServiceClient
	next *generation
	t    *testing.T
}

func (e endingAcquire) Acquire(_ context.Context, r *pb.AcquireRequest, _ ...grpc.CallOption) (*pb.AcquireResponse, error) {
	if r.GetResumed().GetZnode() != "/l/lock-1" {
		e.t.Errorf("it resumes %v", r.GetResumed())
	}
	close(e.next.ended)
	return nil, status.Error(codes.Unavailable, "the connection has ended")
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
			s.client.grants = endingAcquire{next: next, t: t}
			_, _, err := s.Acquire(t.Context(), "lock /l", "lock", &pb.AcquireRequest{}, nil)
			got <- err
		}()
		synctest.Wait()
		s.mu.Lock()
		for _, w := range s.pending {
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

// releases counts the calls of Release, and fails the first with an error.
type releases struct {
	pb.GrantServiceClient
	fails error
	at    []time.Time
}

func (r *releases) Release(context.Context, *pb.ReleaseRequest, ...grpc.CallOption) (*pb.ReleaseResponse, error) {
	if r.at = append(r.at, time.Now()); len(r.at) == 1 {
		return nil, r.fails
	}
	return &pb.ReleaseResponse{}, nil
}

// A release that gRPC has failed is sent again at once, because the next contender waits for
// it. The client does not wait to learn whether the plugin has ended.
func TestAReleaseIsRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := resumable(t)
		sent := &releases{fails: status.Error(codes.Unavailable, "the connection has ended")}
		s.client.grants = sent
		must.Do(t, (&Grant{s: s, id: "1", lost: make(chan struct{})}).ReleaseGrant(t.Context()))
		if len(sent.at) != 2 || !sent.at[1].Equal(sent.at[0]) {
			t.Errorf("it was sent at %v", sent.at)
		}
	})
}

// The plugin has answered that the grant is not held. A later call returns that answer.
func TestARefusedReleaseIsNotSentAgain(t *testing.T) {
	s, _ := resumable(t)
	sent := &releases{fails: wire.ToStatus(recipes.ErrNotHeld)}
	s.client.grants = sent
	g := &Grant{s: s, id: "1", lost: make(chan struct{})}
	for range 2 {
		if err := g.ReleaseGrant(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
	}
	if len(sent.at) != 1 {
		t.Errorf("it was sent %d times", len(sent.at))
	}
}

// If a plugin answers that it does not hold a grant, the next plugin does not resume that grant.
func TestAGrantThatThePluginDoesNotHoldIsForgotten(t *testing.T) {
	s, _ := resumable(t)
	g := &Grant{s: s, id: "1", lost: make(chan struct{})}
	if _, err := s.holdGrants(&pendingCall{at: s.owner}, g); err != nil {
		t.Fatal(err)
	}
	if g.EndIfNotHeld(recipes.ErrNotHeld); len(s.held)+len(s.owned) > 0 {
		t.Errorf("held: %d; for the next plugin: %d", len(s.held), len(s.owned))
	}
}

// listened is a context that counts the contexts that depend on it.
type listened struct {
	context.Context
	done chan struct{}
	by   atomic.Int64
}

func (l *listened) Done() <-chan struct{} { return l.done }

func (l *listened) AfterFunc(func()) (stop func() bool) {
	l.by.Add(1)
	return func() bool { l.by.Add(-1); return true }
}

// A context may last as long as the program. If each call left something in it, memory would
// grow.
func TestACallLeavesNothingInItsContext(t *testing.T) {
	s, _ := resumable(t)
	ctx := &listened{Context: t.Context(), done: make(chan struct{})}
	must.Do(t, s.complete(ctx, Options{}, func(context.Context) error {
		if ctx.by.Load() == 0 {
			t.Error("the call does not end with its context")
		}
		return nil
	}))
	if n := ctx.by.Load(); n != 0 {
		t.Errorf("%d contexts still depend on it", n)
	}
}
