package carry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// maxAnswer bounds one answer, as in a gRPC call of the host's.
const maxAnswer = 1<<31 - 1

// Stream is the host's end of a stream of calls, or of a connection of their own.
type Stream struct {
	conn    *Conn
	link    link
	options []grpc.CallOption // of a stub's call that it carries
	settled chan struct{}     // closed when the stream carries calls, or never will
	broken  chan struct{}     // closed when err is set
	err     error

	mu     sync.Mutex
	limits Limits // none before the plugin has told them, and when the stream has ended
	calls  map[uint64]*call
	idle   []*call // none of them waits
	taken  int     // calls that have a place, their number and bytes
	bytes  int
	last   uint64 // id

	waiting struct { // to be sent
		calls   []*pb.Call
		cancels []uint64
	}
	message pb.CarryRequest // that is sent; used again
	sending bool            // somebody sends, and will send what waits
	rest    chan struct{}   // hands that duty to sendRest
	queued  uint64          // bytes that were ever given to be sent
	arrived uint64          // of these, which the plugin is known to have read
}

func newStream(c *Conn) *Stream {
	s := &Stream{
		conn: c, settled: make(chan struct{}), broken: make(chan struct{}),
		calls: make(map[uint64]*call), rest: make(chan struct{}, 1),
	}
	s.options = []grpc.CallOption{grpc.StaticMethod(), onStream{stream: s}}
	return s
}

// Settled is closed when it is known whether the stream carries calls.
func (s *Stream) Settled() <-chan struct{} { return s.settled }

// Broken is closed when one side has broken the rules of the stream. Err tells which.
// A stream that ends with its connection is not broken.
func (s *Stream) Broken() <-chan struct{} { return s.broken }

// Err says how the stream was broken. It matches recipes.ErrPluginLost.
func (s *Stream) Err() error { return s.err }

// Run opens the stream and reads answers until ctx or the stream ends.
func (s *Stream) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := s.open(ctx)
	if err != nil {
		s.end(err)
		close(s.settled)
		return
	}
	var sender sync.WaitGroup
	sender.Go(func() { s.sendRest(ctx) })
	close(s.settled)
	err = s.read()
	s.end(err)
	cancel()
	sender.Wait()
}

func (s *Stream) open(ctx context.Context) (err error) {
	if s.link, err = s.conn.connect(ctx); err != nil {
		return err
	}
	var m pb.CarryResponse
	if err := s.link.receive(&m); err != nil {
		return err
	}
	if m.GetLimits() == nil {
		return breach("the first message has no limits")
	}
	s.mu.Lock()
	s.limits = limits(m.GetLimits())
	s.mu.Unlock()
	return s.take(m.GetAnswers())
}

// read takes answers until the stream ends.
func (s *Stream) read() error {
	var m pb.CarryResponse
	for {
		if err := s.link.receive(&m); err != nil {
			return err
		}
		if m.GetLimits() != nil {
			return breach("limits come again")
		}
		if len(m.GetStatus()) > 0 {
			return fromStatus(m.GetStatus())
		}
		if err := s.take(m.GetAnswers()); err != nil {
			return err
		}
	}
}

// errBreach is what a plugin is told by nobody: it sends what makes no sense.
var errBreach = errors.New("the plugin broke the rules of the stream of calls")

func breach(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errBreach}, args...)...)
}

// take hands answers to those who wait for them.
func (s *Stream) take(answers []*pb.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range answers {
		c := s.calls[a.GetId()]
		switch {
		case c == nil:
			return breach("an answer to call %d, which waits for none", a.GetId())
		case a.GetMore() && len(a.GetStatus()) > 0:
			return breach("more is to follow the error of call %d", a.GetId())
		case len(c.payload)+len(a.GetPayload()) > maxAnswer:
			return breach("the answer to call %d is too large", a.GetId())
		}
		c.add(a.GetPayload())
		s.arrived = max(s.arrived, c.end)
		if a.GetMore() {
			select {
			case c.part <- struct{}{}:
			default: // nobody wants to read it, or has read what came before
			}
			continue
		}
		delete(s.calls, c.id)
		s.giveBack(c.bytes)
		if len(a.GetStatus()) > 0 {
			c.err = fromStatus(a.GetStatus())
		}
		c.done <- struct{}{}
	}
	return nil
}

// end fails all calls. Their error has no details, because their outcome is unknown.
func (s *Stream) end(err error) {
	s.conn.leave(s, status.Code(err) == codes.Unimplemented)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = Limits{}
	for _, c := range s.calls {
		c.err = status.Errorf(codes.Unavailable, "the stream of calls ended: %v", err)
		c.done <- struct{}{}
	}
	clear(s.calls)
	if s.err = brokenBy(err); s.err != nil {
		close(s.broken)
	}
}

// brokenBy says which side has broken the rules, if any has.
func brokenBy(err error) error {
	if errors.Is(err, errBreach) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w: %w", recipes.ErrPluginLost, recipes.ErrInternal, err)
	}
	if e, said := wire.Error(err); said && !errors.Is(e, recipes.ErrUnsupported) {
		return fmt.Errorf("%w: the plugin has ended the stream of calls: %w", recipes.ErrPluginLost, e)
	}
	return nil
}
