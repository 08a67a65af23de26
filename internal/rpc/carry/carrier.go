package carry

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type stream = grpc.BidiStreamingServer[pb.CarryRequest, pb.CarryResponse]

// carrier serves one stream of calls.
type carrier struct {
	*Dispatcher
	ctx context.Context
	out *outbox

	running sync.WaitGroup

	mu    sync.Mutex
	last  uint64
	bytes int                           // payloads of calls that run
	calls map[uint64]context.CancelFunc // that run
}

// Carry is CallService's.
func (d *Dispatcher) Carry(st stream) error {
	if err := st.Send(&pb.CarryResponse{Limits: toLimits(d.limits)}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(st.Context())
	c := &carrier{Dispatcher: d, ctx: ctx, out: newOutbox(st.Send), calls: make(map[uint64]context.CancelFunc)}
	defer c.running.Wait()
	defer cancel()
	for {
		m, err := st.Recv()
		if err != nil {
			return err
		}
		if err := c.take(m); err != nil {
			return err
		}
		c.out.wait()
	}
}

// take starts and cancels calls. It returns an error if the host has broken the rules.
func (c *carrier) take(m *pb.CarryRequest) error {
	for _, call := range m.GetCalls() {
		if err := c.start(call); err != nil {
			return err
		}
	}
	for _, id := range m.GetCancels() {
		if err := c.cancel(id); err != nil {
			return err
		}
	}
	return nil
}

func (c *carrier) start(call *pb.Call) error {
	id, payload := call.GetId(), len(call.GetPayload())
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case id <= c.last:
		return fmt.Errorf("%w: call %d came after call %d", recipes.ErrInvalid, id, c.last)
	case len(c.calls) >= c.limits.Calls:
		return fmt.Errorf("%w: %d calls are not answered", recipes.ErrLimit, len(c.calls))
	case payload > c.limits.Payload:
		return fmt.Errorf("%w: call %d has %d bytes", recipes.ErrLimit, id, payload)
	case c.bytes+payload > c.limits.Bytes:
		return fmt.Errorf("%w: calls that are not answered have %d bytes", recipes.ErrLimit, c.bytes)
	}
	c.last = id
	ctx, cancel := c.context(call)
	c.calls[id] = cancel
	c.bytes += payload
	c.running.Go(func() {
		answer, err := c.call(ctx, call)
		cancel()
		c.end(id, payload)
		c.out.put(id, answer, err)
	})
	return nil
}

// context returns a context of the call's own.
func (c *carrier) context(call *pb.Call) (context.Context, context.CancelFunc) {
	if t := call.GetTimeout(); t != nil {
		return context.WithTimeout(c.ctx, t.AsDuration())
	}
	return context.WithCancel(c.ctx)
}

func (c *carrier) end(id uint64, payload int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
	c.bytes -= payload
}

// cancel cancels a call, unless it is answered.
func (c *carrier) cancel(id uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == 0 || id > c.last {
		return fmt.Errorf("%w: call %d is cancelled before it came", recipes.ErrInvalid, id)
	}
	if cancel := c.calls[id]; cancel != nil {
		cancel()
	}
	return nil
}
