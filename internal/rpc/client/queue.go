package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var (
	grantService = pb.NewGrantServiceClient(link.Router{})
	queueService = pb.NewQueueServiceClient(link.Router{})
)

// queue is the common part of queues and priority queues.
type queue struct {
	recipe
	cfg      recipes.QueueConfig
	priority bool
}

type fifo struct{ *queue }

type byPriority struct{ *queue }

func (s *session) Queue(path string, cfg recipes.QueueConfig) (recipes.Queue, error) {
	q, err := s.queue(path, cfg, false)
	if err != nil {
		return nil, err
	}
	return fifo{q}, nil
}

func (s *session) PriorityQueue(path string, cfg recipes.QueueConfig) (recipes.PriorityQueue, error) {
	q, err := s.queue(path, cfg, true)
	if err != nil {
		return nil, err
	}
	return byPriority{q}, nil
}

func (s *session) queue(path string, cfg recipes.QueueConfig, priority bool) (*queue, error) {
	r, err := s.at("queue", path, cfg.Dialect, cfg.Validate())
	return &queue{r, cfg, priority}, err
}

func (q fifo) Put(ctx context.Context, data []byte) (recipes.ElementID, error) {
	return first(q.put(ctx, 0, [][]byte{data}))
}

func (q fifo) PutMany(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error) {
	return q.put(ctx, 0, data)
}

func (q byPriority) Put(ctx context.Context, priority int, data []byte) (recipes.ElementID, error) {
	return first(q.put(ctx, priority, [][]byte{data}))
}

func (q byPriority) PutMany(ctx context.Context, priority int, data ...[]byte) ([]recipes.ElementID, error) {
	return q.put(ctx, priority, data)
}

func first(ids []recipes.ElementID, err error) (recipes.ElementID, error) {
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

func (q *queue) put(ctx context.Context, priority int, data [][]byte) ([]recipes.ElementID, error) {
	if err := q.cfg.ValidatePut(priority, len(data)); err != nil {
		return nil, fmt.Errorf("%s: %w", q, err)
	}
	if len(data) == 0 {
		return nil, nil
	}
	id := q.s.RequestID()
	return write(ctx, q.recipe, link.Once().Abandonable(id), queueService.PutElements, &pb.PutElementsRequest{
		Session: q.s.Handle(), Path: q.path, Dialect: q.dialect, Queue: q.message(), Priority: int32(priority), Data: data, RequestId: id,
	}, func(a *pb.PutElementsResponse) []recipes.ElementID { return wire.ElementIDs(a.GetIds(), len(data)) })
}

func (q *queue) message() *pb.Queue { return wire.ToQueue(q.priority, q.cfg) }

// Take receives an element and acknowledges it: see QueueService in queue.proto.
func (q *queue) Take(ctx context.Context) (recipes.Element, error) {
	if q.dialect != "" {
		return q.takeUnclaimed(ctx)
	}
	for {
		d, err := q.Receive(ctx)
		if err != nil {
			return recipes.Element{}, err
		}
		err = d.Ack(ctx)
		switch {
		case err == nil:
			return d.Element(), nil
		case errors.Is(err, recipes.ErrUnknownOutcome), errors.Is(err, recipes.ErrSessionLost), ctx.Err() != nil:
			// This case comes before ErrNotHeld, which may match too: the element must not be
			// lost without an error.
			if !errors.Is(err, recipes.ErrUnknownOutcome) {
				err = fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, err)
			}
			return recipes.Element{}, fmt.Errorf("%s: %s may have been taken, and would be lost: %w", q, d.Element().ID, err)
		case errors.Is(err, recipes.ErrNotHeld): // another client has deleted the claim, or the element
		default:
			return recipes.Element{}, err
		}
	}
}

// takeUnclaimed takes an element in a dialect whose other consumers see no claims. The answer
// has the only copy of the element, so a failed call may have lost it.
func (q *queue) takeUnclaimed(ctx context.Context) (recipes.Element, error) {
	id := q.s.RequestID()
	return write(ctx, q.recipe, link.Once().Abandonable(id), queueService.TakeElement, &pb.TakeElementRequest{
		Session: q.s.Handle(), RequestId: id, Path: q.path, Dialect: q.dialect, Queue: q.message(),
	}, func(a *pb.TakeElementResponse) recipes.Element { return wire.Element(a.GetElement()) })
}

func (q *queue) Receive(ctx context.Context) (recipes.Delivery, error) {
	g, a, err := q.acquire(ctx, "queue", &pb.AcquireRequest{Recipe: &pb.AcquireRequest_Queue{Queue: q.message()}}, nil)
	if err != nil {
		return nil, err
	}
	d := a.GetDelivery()
	return &delivery{Grant: g, done: make(chan struct{}), element: wire.Element(d.GetElement()), attempt: int(d.GetAttempt())}, nil
}

func (q *queue) Peek(ctx context.Context) (recipes.Element, error) {
	return read(ctx, q.recipe, queueService.PeekElement, &pb.PeekElementRequest{Session: q.s.Handle(), Path: q.path, Dialect: q.dialect, Queue: q.message()},
		func(a *pb.PeekElementResponse) recipes.Element { return wire.Element(a.GetElement()) })
}

func (q *queue) Len(ctx context.Context) (int, error) {
	return read(ctx, q.recipe, queueService.CountElements, &pb.CountElementsRequest{Session: q.s.Handle(), Path: q.path, Dialect: q.dialect, Queue: q.message()},
		func(a *pb.CountElementsResponse) int { return int(a.GetCount()) })
}

func (q *queue) DeadLetters(ctx context.Context) ([]recipes.Element, error) {
	return read(ctx, q.recipe, queueService.ListDeadLetters, &pb.ListDeadLettersRequest{Session: q.s.Handle(), Path: q.path, Dialect: q.dialect, Queue: q.message()},
		func(a *pb.ListDeadLettersResponse) []recipes.Element { return wire.Each(a.GetElements(), wire.Element) })
}

// delivery is the host's half of a received element.
type delivery struct {
	*link.Grant
	element recipes.Element
	attempt int

	once   sync.Once
	acked  bool          // by Ack, not Return
	result error         // set before done is closed
	done   chan struct{} // closed at the end of the first Ack or Return
}

func (d *delivery) Element() recipes.Element { return d.element }
func (d *delivery) Attempt() int             { return d.attempt }

func (d *delivery) Ack(ctx context.Context) error    { return d.conclude(ctx, true) }
func (d *delivery) Return(ctx context.Context) error { return d.conclude(ctx, false) }

// conclude ends the delivery on the first call, and waits for the end. A goroutine of the
// session makes the call to the plugin, which therefore continues when ctx ends.
func (d *delivery) conclude(ctx context.Context, ack bool) error {
	d.once.Do(func() {
		d.acked = ack
		if reason := d.End(); reason != nil {
			d.finish(reason)
			return
		}
		d.Session().Go(func() { d.finish(d.call(ack)) }) // once the session is closed, the call fails at once
	})
	if ack != d.acked && errors.Is(d.Err(), recipes.ErrReleased) {
		return d.failed(recipes.ErrReleased)
	}
	if err := link.Outcome(ctx, d.done, &d.result); err != nil {
		return d.failed(err)
	}
	return nil
}

func (d *delivery) finish(err error) {
	d.result = err
	close(d.done)
}

func (d *delivery) call(ack bool) error {
	var calls int
	var err error
	if ack {
		calls, err = link.Persist(d.Session(), queueService.AcknowledgeElement, &pb.AcknowledgeElementRequest{Session: d.Session().Handle(), RequestId: d.ID()})
	} else {
		calls, err = link.Persist(d.Session(), grantService.Release, &pb.ReleaseRequest{Session: d.Session().Handle(), RequestId: d.ID()})
		if calls > 1 {
			err = link.Forgotten(err)
		}
	}
	if err == nil || errors.Is(err, recipes.ErrNotHeld) {
		d.Forget()
	}
	if errors.Is(err, recipes.ErrSessionLost) || calls > 1 && link.Unexplained(err) { // an earlier call may have succeeded
		return fmt.Errorf("%w: %w: %w", recipes.ErrNotHeld, recipes.ErrUnknownOutcome, err)
	}
	return err
}

func (d *delivery) failed(err error) error {
	what := "return"
	if d.acked {
		what = "acknowledge"
	}
	return fmt.Errorf("%s %s: %w", what, d.element.ID, err)
}
