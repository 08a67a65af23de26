package carry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// maxAnswer bounds one answer, like the answer of a host's gRPC call.
const maxAnswer = 1<<31 - 1

// Calls is the host's end of a connection for calls alone.
type Calls struct {
	conn    *Conn
	framed  *framed
	options []grpc.CallOption // the options of a carried call
	settled chan struct{}     // closed when it carries calls, or when it is known that it never will
	broken  chan struct{}     // closed when err is set
	err     error

	mu     sync.Mutex
	limits *pb.Limits // nil before the plugin has sent them, and after the connection has ended
	calls  map[uint64]*call
	unused sync.Pool // answered calls, for reuse
	taken  int       // number and bytes of the calls with a reserved place
	bytes  int
	last   uint64 // id

	waiting struct { // to be sent
		calls   []*pb.Call
		cancels []uint64
	}
	message pb.CarryRequest // the message being sent; reused
	out     Sender[*pb.CarryRequest]
	sender  sync.WaitGroup // the goroutine of rest
	queued  uint64         // bytes ever queued for sending
	arrived uint64         // of these, the bytes that the plugin is known to have read
}

func newCalls(c *Conn) *Calls {
	cs := &Calls{
		conn: c, settled: make(chan struct{}), broken: make(chan struct{}),
		calls:  make(map[uint64]*call),
		unused: sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }},
	}
	cs.out = Sender[*pb.CarryRequest]{
		Mu: &cs.mu, Next: cs.batch, Sent: cs.sent, Rest: cs.rest,
		Send: func(m *pb.CarryRequest) error { return cs.framed.send(m) },
	}
	cs.options = []grpc.CallOption{grpc.StaticMethod(), carried{calls: cs}}
	return cs
}

// Settled is closed when it is known whether the connection carries calls.
func (cs *Calls) Settled() <-chan struct{} { return cs.settled }

// Broken is closed when one side has broken the protocol. Err then returns which side, and how.
// A connection that only ends is not broken.
func (cs *Calls) Broken() <-chan struct{} { return cs.broken }

// Err returns how the protocol was broken. It matches recipes.ErrPluginLost.
func (cs *Calls) Err() error { return cs.err }

// Run opens the connection and reads answers until ctx or the connection ends. If it cannot
// be opened, gRPC makes the calls.
func (cs *Calls) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := cs.open(ctx)
	if err != nil {
		cs.end(err)
		close(cs.settled)
		return
	}
	close(cs.settled)
	err = cs.read()
	cs.end(err)
	cancel()
	cs.sender.Wait()
}

func (cs *Calls) open(ctx context.Context) (err error) {
	conn, err := cs.conn.dial(ctx)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	cs.framed = newFramed(conn, maxResponse)
	var m pb.CarryResponse
	if err := cs.receive(&m); err != nil {
		return err
	}
	if m.GetLimits() == nil {
		return breach("the first message has no limits")
	}
	cs.mu.Lock()
	cs.limits = limits(m.GetLimits())
	cs.mu.Unlock()
	return cs.take(m.GetAnswers())
}

// receive returns a breach if the plugin sends an invalid message.
func (cs *Calls) receive(m *pb.CarryResponse) error {
	err := cs.framed.receive(m)
	if errors.Is(err, recipes.ErrInvalid) || errors.Is(err, recipes.ErrLimit) {
		return breach("%v", err)
	}
	return err
}

func (cs *Calls) read() error {
	var m pb.CarryResponse
	for {
		if err := cs.receive(&m); err != nil {
			return err
		}
		if m.GetLimits() != nil {
			return breach("limits come again")
		}
		if len(m.GetStatus()) > 0 {
			return fromStatus(m.GetStatus())
		}
		if err := cs.take(m.GetAnswers()); err != nil {
			return err
		}
	}
}

// errBreach ends a connection whose plugin breaks the protocol.
var errBreach = errors.New("the plugin broke the rules of the connection of calls")

func breach(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errBreach}, args...)...)
}

// take delivers answers to the waiting callers.
func (cs *Calls) take(answers []*pb.Answer) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, a := range answers {
		c := cs.calls[a.GetId()]
		switch {
		case c == nil:
			return breach("answer to call %d, which waits for none", a.GetId())
		case a.GetMore() && len(a.GetStatus()) > 0:
			return breach("the error of call %d must be its last part", a.GetId())
		case len(c.payload)+len(a.GetPayload()) > maxAnswer:
			return breach("the answer to call %d is too large", a.GetId())
		}
		c.add(a.GetPayload())
		cs.arrived = max(cs.arrived, c.end)
		if a.GetMore() {
			select {
			case c.part <- struct{}{}:
			default: // the caller reads no parts, or has not read the previous one yet
			}
			continue
		}
		delete(cs.calls, c.id)
		cs.unreserve(c.bytes)
		if len(a.GetStatus()) > 0 {
			c.err = fromStatus(a.GetStatus())
		}
		c.done <- struct{}{}
	}
	return nil
}

// end fails all calls. Their errors have no details, because their outcome is unknown. Calls
// that wait are never sent.
func (cs *Calls) end(err error) {
	cs.conn.leave(cs)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.limits = nil
	if cs.err = brokenBy(err); cs.err != nil {
		close(cs.broken)
	}
	gone := status.Errorf(codes.Unavailable, "the connection of calls ended: %v", err)
	for _, m := range cs.waiting.calls {
		if c := cs.calls[m.GetId()]; c != nil {
			c.err = UnsentError{gone}
		}
	}
	cs.waiting.calls = nil // another goroutine may still send
	for _, c := range cs.calls {
		c.err = cmp.Or(c.err, gone)
		c.done <- struct{}{}
	}
	clear(cs.calls)
}

// brokenBy returns which side has broken the protocol; nil if neither has.
func brokenBy(err error) error {
	if errors.Is(err, errBreach) {
		return fmt.Errorf("%w: %w: %w", recipes.ErrPluginLost, recipes.ErrInternal, err)
	}
	if e, answered := wire.Error(err); answered {
		return fmt.Errorf("%w: the plugin has ended the connection of calls: %w", recipes.ErrPluginLost, e)
	}
	return nil
}
