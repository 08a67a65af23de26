package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
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
	r, err := s.at("queue", path, cfg.Dialect)
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	return &queue{r, cfg, priority}, nil
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
	id := q.s.requestID()
	return write(ctx, q.recipe, once.by(id), q.s.queues.PutElements, &pb.PutElementsRequest{
		Session: q.s.handle, Queue: q.ref(), Priority: int32(priority), Data: data, RequestId: id,
	}, func(a *pb.PutElementsResponse) []recipes.ElementID { return wire.ElementIDs(a.GetIds(), len(data)) })
}

func (q *queue) ref() *pb.QueueRef { return wire.ToQueue(q.path, q.priority, q.cfg) }

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
	id := q.s.requestID()
	return write(ctx, q.recipe, once.by(id), q.s.queues.TakeElement, &pb.TakeElementRequest{Session: q.s.handle, RequestId: id, Queue: q.ref()},
		func(a *pb.TakeElementResponse) recipes.Element { return wire.Element(a.GetElement()) })
}

func (q *queue) Receive(ctx context.Context) (recipes.Delivery, error) {
	var r *pb.ReceiveElementResponse
	g, err := q.acquire(ctx, "queue", nil, func(ctx context.Context, id string, resumed *pb.Grant) (answer, error) {
		got, err := q.s.queues.ReceiveElement(ctx, &pb.ReceiveElementRequest{
			Session: q.s.handle, RequestId: id, Queue: q.ref(), Resumed: resumed,
		})
		if resumed == nil { // a resumed delivery keeps its element
			r = got
		}
		return got, err
	})
	if err != nil {
		return nil, err
	}
	return &delivery{
		remoteGrant: g, done: make(chan struct{}),
		element: wire.Element(r.GetElement()), attempt: int(r.GetAttempt()),
	}, nil
}

func (q *queue) Peek(ctx context.Context) (recipes.Element, error) {
	return read(ctx, q.recipe, q.s.queues.PeekElement, &pb.PeekElementRequest{Session: q.s.handle, Queue: q.ref()},
		func(a *pb.PeekElementResponse) recipes.Element { return wire.Element(a.GetElement()) })
}

func (q *queue) Len(ctx context.Context) (int, error) {
	return read(ctx, q.recipe, q.s.queues.CountElements, &pb.CountElementsRequest{Session: q.s.handle, Queue: q.ref()},
		func(a *pb.CountElementsResponse) int { return int(a.GetCount()) })
}

func (q *queue) DeadLetters(ctx context.Context) ([]recipes.Element, error) {
	return read(ctx, q.recipe, q.s.queues.ListDeadLetters, &pb.ListDeadLettersRequest{Session: q.s.handle, Queue: q.ref()},
		func(a *pb.ListDeadLettersResponse) []recipes.Element { return wire.Elements(a.GetElements()) })
}
