package server_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// A newer host may send other messages. They do not prove that the host's clock runs, and get
// no echo.
func TestOnlyHeartbeatsKeepASession(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		h := newRawHost(t, server.Config{})
		h.timeout = timeout
		h.open(nil)
		h.send(heartbeat(7))
		var echoed []uint64
		var reason error
		over := make(chan struct{})
		go func() {
			defer close(over)
			for {
				m, err := h.stream.Recv()
				if err != nil {
					return
				}
				if e := m.GetBeatEcho(); e != nil {
					echoed = append(echoed, e.GetNumber())
				}
				reason = wire.Failure(m.GetStateChanged().GetReason(), recipes.ErrSessionLost)
			}
		}()
		began := time.Now()
		for range 3 {
			time.Sleep(timeout / 4)
			h.send(&pb.OpenRequest{})
		}
		<-h.opened.Done()
		if d := time.Since(began); d != timeout {
			t.Errorf("the session ended %v after the last heartbeat", d)
		}
		<-over
		if len(echoed) != 1 || echoed[0] != 7 {
			t.Errorf("echoed %v", echoed)
		}
		if !errors.Is(reason, recipes.ErrPluginLost) || errors.Is(reason, recipes.ErrLimit) {
			t.Errorf("the reported reason is %v", reason)
		}
	})
}

func TestAStreamBeginsWithStart(t *testing.T) {
	h := newRawHost(t, server.Config{})
	st := must.Get(h.sessions.Open(h.ctx))(t)
	must.Do(t, st.Send(heartbeat(1)))
	_, err := st.Recv()
	if e, _ := wire.Error(err); !errors.Is(e, recipes.ErrInvalid) || h.server.Sessions() > 0 {
		t.Error(err)
	}
}

// The attempt to open a session ends when its host has died or no longer waits.
func TestAttemptToOpenEndsWithItsStream(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		const patience = time.Hour
		ended := make(chan error)
		ctx, cancelStream := context.WithCancel(t.Context())
		h := newRawHost(t, server.Config{Open: func(ctx context.Context, _ recipes.SessionConfig) (recipes.Client, error) {
			cancelStream()
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		}})
		began := time.Now()
		go h.try(ctx, nil, func(m proto.Message) { m.(*pb.Start).OpenTimeout = durationpb.New(patience) })
		if err := <-ended; time.Since(began) >= patience || !errors.Is(err, context.Canceled) {
			t.Errorf("it ended after %v: %v", time.Since(began), err)
		}
	})
}

// The message is refused over both transports.
func TestMessageThatIsTooLargeIsRefusedUnread(t *testing.T) {
	const limit = 1 << 10
	h := newRawHost(t, server.Config{Limits: server.Limits{Message: limit}})
	h.session = "none"
	for size, want := range map[int]error{limit / 2: recipes.ErrSessionLost, 2 * limit: recipes.ErrTooLarge} {
		if _, err := h.acquire(&pb.AcquireRequest{RequestId: "1", Path: "/l", Data: make([]byte, size)}); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Calls of hosts that support only gRPC are measured too.
func TestCallsOverGRPCAreMeasured(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	h := newRawHost(t, server.Config{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
	must.Get(h.plugin.Info(h.ctx, new(pb.InfoRequest)))(t)
	var got metricdata.ResourceMetrics
	for ctx := bounded(t); len(got.ScopeMetrics) == 0; runtime.Gosched() { // counted after the answer was sent
		if err := reader.Collect(ctx, &got); err != nil {
			t.Fatal("nothing was measured: ", err)
		}
	}
}

// deadlines records the deadlines of the puts that reach a session.
type deadlines struct {
	recipes.Client
	puts chan time.Time
}

type notingQueue struct {
	recipes.Queue
	puts chan time.Time
}

func (d deadlines) Queue(string, recipes.QueueConfig) (recipes.Queue, error) {
	return notingQueue{puts: d.puts}, nil
}

func (q notingQueue) PutMany(ctx context.Context, _ ...[]byte) ([]recipes.ElementID, error) {
	end, _ := ctx.Deadline()
	q.puts <- end
	return nil, nil
}

// A put that waits for capacity gives up before its caller does, so that the caller gets the
// answer that nothing was put. A put that does not wait may use all of the caller's time.
func TestAPutThatWaitsGivesUpBeforeItsCaller(t *testing.T) {
	puts := make(chan time.Time, 2)
	h := newRawHost(t, server.Config{})
	h.wrap = func(s recipes.Client) recipes.Client { return deadlines{s, puts} }
	h.open(nil)
	ctx, cancel := context.WithTimeout(h.ctx, 10*time.Minute) // the subject of the test: the deadline that reaches the session
	defer cancel()
	end, _ := ctx.Deadline()
	put := func(capacity int32) time.Time {
		must.Get(pb.NewQueueServiceClient(h.conn).PutElements(ctx, &pb.PutElementsRequest{Session: h.session, RequestId: "1",
			Path: "/q", Queue: &pb.Queue{Capacity: capacity}, Data: [][]byte{{1}}}))(t)
		return <-puts
	}
	// gRPC sends the time that is left. A slow request gets a later deadline.
	for {
		all, some := put(0), put(1)
		if all.Before(end.Add(-time.Millisecond)) {
			t.Fatalf("the caller gives up at %v, a put without bound at %v", end, all)
		}
		if all.Sub(some) > 200*time.Millisecond {
			return
		}
	}
}
