package carry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type carrier struct {
	*Dispatcher
	ctx context.Context
	out *outbox

	workers workers

	mu    sync.Mutex
	last  uint64
	bytes int                           // payload bytes of the running calls
	calls map[uint64]context.CancelFunc // running calls
}

// ServeConn serves a connection whose handshake has agreed on Protocol, until ctx or the
// connection ends. It closes the connection before it cancels the calls, so that the host
// never gets Canceled for a call that it has not cancelled.
func (d *Dispatcher) ServeConn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	f := newFramed(conn, int(d.limits.GetMessage()))
	err := d.serve(context.WithoutCancel(ctx), f)
	if errors.Is(err, recipes.ErrInvalid) || errors.Is(err, recipes.ErrLimit) {
		_ = f.send(&pb.CarryResponse{Status: toStatus(wire.ToStatus(err))})
	}
}

// serve reads calls and sends answers, until the connection ends or the host has broken the
// protocol.
func (d *Dispatcher) serve(ctx context.Context, f *framed) error {
	if err := f.send(&pb.CarryResponse{Limits: d.limits}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &carrier{Dispatcher: d, ctx: ctx, calls: make(map[uint64]context.CancelFunc)}
	c.out = newOutbox(f, c.workers.running.Go)
	defer c.workers.finish()
	defer cancel()
	for {
		m := new(pb.CarryRequest)
		if err := f.receive(m); err != nil {
			return err
		}
		if err := c.take(m); err != nil {
			return err
		}
		c.out.awaitSpace()
	}
}

// take starts and cancels calls. It returns an error if the host has broken the protocol.
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
		return fmt.Errorf("%w: call %d arrived after call %d", recipes.ErrInvalid, id, c.last)
	case len(c.calls) >= int(c.limits.GetCalls()):
		return fmt.Errorf("%w: %d calls are not answered", recipes.ErrLimit, len(c.calls))
	case payload > int(c.limits.GetPayload()):
		return fmt.Errorf("%w: call %d has %d bytes", recipes.ErrLimit, id, payload)
	case c.bytes+payload > int(c.limits.GetBytes()):
		return fmt.Errorf("%w: the unanswered calls have %d bytes", recipes.ErrLimit, c.bytes)
	}
	c.last = id
	ctx, cancel := c.context(call)
	c.calls[id] = cancel
	c.bytes += payload
	c.workers.do(task{c, ctx, cancel, call})
	return nil
}

type task struct {
	carrier *carrier
	ctx     context.Context
	cancel  context.CancelFunc
	call    *pb.Call
}

func (t task) run() {
	// t is not used after this line. Otherwise all of t, including the request's payload,
	// would be kept while the call waits.
	c, ctx, cancel, call := t.carrier, t.ctx, t.cancel, t.call
	id, payload := call.GetId(), len(call.GetPayload())
	var early *running
	if call.GetEarly() {
		early = c.inParts(id)
		ctx = context.WithValue(ctx, earlyKey{}, early)
	}
	a := &pb.Answer{Id: id}
	var err error
	if a.Payload, err = c.call(ctx, call); err != nil {
		a.Status = toStatus(err)
	}
	cancel()
	early.end()
	c.end(id, payload)
	c.out.put(a, math.MaxInt)
}

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
		return fmt.Errorf("%w: call %d was cancelled before it arrived", recipes.ErrInvalid, id)
	}
	if cancel := c.calls[id]; cancel != nil {
		cancel()
	}
	return nil
}

// maxWorkers bounds the goroutines that are kept for the next calls.
const maxWorkers = 16

// workers make calls, each in its own goroutine. A goroutine is reused after its call,
// because its stack has grown to the needed size.
type workers struct {
	mu      sync.Mutex
	idle    []chan task // do takes the last, which was busy most recently
	over    bool
	running sync.WaitGroup
}

// do makes a call without waiting for it.
func (w *workers) do(t task) {
	w.mu.Lock()
	n := len(w.idle) - 1
	if n < 0 {
		w.mu.Unlock()
		w.running.Go(func() { w.work(t) })
		return
	}
	next := w.idle[n]
	w.idle = w.idle[:n]
	w.mu.Unlock()
	next <- t // never blocks: it has room for one
}

func (w *workers) work(t task) {
	var next chan task // made after the first call, which may wait long
	for ok := true; ok; t, ok = <-next {
		t.run()
		t = task{} // keep nothing of it alive
		if next == nil {
			next = make(chan task, 1)
		}
		if !w.offerForReuse(next) {
			return
		}
	}
}

// offerForReuse offers the worker to do for the next call, unless enough workers are idle.
func (w *workers) offerForReuse(next chan task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || len(w.idle) == maxWorkers {
		return false
	}
	w.idle = append(w.idle, next)
	return true
}

// finish waits for the running calls. The caller makes no more.
func (w *workers) finish() {
	w.mu.Lock()
	w.over = true
	for _, next := range w.idle {
		close(next)
	}
	w.idle = nil
	w.mu.Unlock()
	w.running.Wait()
}

// Config configures a Dispatcher.
type Config struct {
	// Intercept is called for every call, like a gRPC server's interceptor. nil does nothing.
	Intercept grpc.UnaryServerInterceptor
	// Stats gets what a gRPC server would report to it. It may be nil.
	Stats stats.Handler
	// Message is the size of the largest message that the gRPC server accepts, in bytes. 0 is
	// gRPC's default.
	Message int
}

// Dispatcher is the plugin's end: it registers services and makes the calls of their unary
// methods.
type Dispatcher struct {
	cfg     Config
	limits  *pb.Limits
	methods map[string]method
}

type method struct {
	service any
	grpc.MethodDesc
}

// NewDispatcher returns a Dispatcher without services. Register them before it serves.
func NewDispatcher(cfg Config) *Dispatcher {
	return &Dispatcher{cfg: cfg, limits: limitsFor(cfg.Message), methods: make(map[string]method)}
}

// RegisterService adds a service. It implements grpc.ServiceRegistrar.
func (d *Dispatcher) RegisterService(desc *grpc.ServiceDesc, service any) {
	for _, m := range desc.Methods {
		d.methods["/"+desc.ServiceName+"/"+m.MethodName] = method{service, m}
	}
}

// call makes one call and returns the response message or the error, as a gRPC server
// would send them.
func (d *Dispatcher) call(ctx context.Context, c *pb.Call) ([]byte, error) {
	m, ok := d.methods[c.GetMethod()]
	if !ok {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %q", c.GetMethod()) // newer than the plugin
	}
	if len(c.GetMetadata()) > 0 {
		ctx = metadata.NewIncomingContext(ctx, metadata.New(c.GetMetadata()))
	}
	if d.cfg.Stats == nil {
		return d.answer(ctx, m, c.GetPayload())
	}
	return d.measured(ctx, m, c)
}

func (d *Dispatcher) answer(ctx context.Context, m method, payload []byte) ([]byte, error) {
	decode := func(request any) error {
		if err := proto.Unmarshal(payload, request.(proto.Message)); err != nil {
			return status.Errorf(codes.Internal, "unmarshalling the request: %v", err)
		}
		return nil
	}
	response, err := m.Handler(m.service, ctx, decode, d.cfg.Intercept)
	if err != nil {
		return nil, err
	}
	b, err := proto.Marshal(response.(proto.Message))
	if err != nil {
		return nil, status.Errorf(codes.Internal, "marshalling the response: %v", err)
	}
	return b, nil
}

// measured calls answer, and reports the call to Stats.
func (d *Dispatcher) measured(ctx context.Context, m method, c *pb.Call) (answer []byte, err error) {
	h, began := d.cfg.Stats, time.Now()
	ctx = h.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: c.GetMethod()})
	h.HandleRPC(ctx, &stats.Begin{BeginTime: began})
	h.HandleRPC(ctx, &stats.InPayload{RecvTime: began, Length: len(c.GetPayload())})
	answer, err = d.answer(ctx, m, c.GetPayload())
	ended := time.Now()
	if err == nil {
		h.HandleRPC(ctx, &stats.OutPayload{SentTime: ended, Length: len(answer)})
	}
	h.HandleRPC(ctx, &stats.End{BeginTime: began, EndTime: ended, Error: err})
	return answer, err
}
