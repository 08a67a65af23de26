package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// queue is what queues and priority queues have in common.
type queue struct {
	s        *session
	path     string
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
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("queue %s: %w", path, err)
	}
	return &queue{s: s, path: path, cfg: cfg, priority: priority}, nil
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
	if err := q.hasDialect(ctx); err != nil {
		return nil, err
	}
	var ids []recipes.ElementID
	err := q.s.changeAbandonably(ctx, q.String(), q.s.changing, func(ctx context.Context, id string) error {
		r, err := q.s.queues.PutElements(ctx, &pb.PutElementsRequest{
			Session: q.s.handle, Queue: q.ref(), Priority: int32(priority), Data: data, RequestId: id,
		})
		ids = wire.ElementIDs(r.GetIds(), len(data))
		return err
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// hasDialect is that of the session, for the dialect of the queue.
func (q *queue) hasDialect(ctx context.Context) error {
	return q.s.hasDialect(ctx, q.String(), q.ref().GetDialect())
}

func (q *queue) Path() string      { return q.path }
func (q *queue) String() string    { return "queue " + q.path }
func (q *queue) ref() *pb.QueueRef { return wire.ToQueue(q.path, q.priority, q.cfg) }

// Take receives and acknowledges: see QueueService in queue.proto.
func (q *queue) Take(ctx context.Context) (recipes.Element, error) {
	if q.ref().GetDialect() != "" {
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
			// This comes before ErrNotHeld, which may match too: the element must not be lost
			// without a word.
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

// takeUnclaimed is Take where the others who take see no claims. The answer has the only
// copy of the element, so a call that breaks may have lost it.
func (q *queue) takeUnclaimed(ctx context.Context) (e recipes.Element, err error) {
	if err := q.hasDialect(ctx); err != nil {
		return recipes.Element{}, err
	}
	err = q.s.changeAbandonably(ctx, q.String(), q.s.changing, func(ctx context.Context, id string) error {
		r, err := q.s.queues.TakeElement(ctx, &pb.TakeElementRequest{Session: q.s.handle, RequestId: id, Queue: q.ref()})
		e = wire.Element(r.GetElement())
		return err
	})
	return e, err
}

func (q *queue) Receive(ctx context.Context) (recipes.Delivery, error) {
	if err := q.hasDialect(ctx); err != nil {
		return nil, err
	}
	var r *pb.ReceiveElementResponse
	g, err := q.s.contend(ctx, "queue", q.String(), true, nil, func(ctx context.Context, id string, had *pb.Grant) (answer, error) {
		got, err := q.s.queues.ReceiveElement(ctx, &pb.ReceiveElementRequest{
			Session: q.s.handle, RequestId: id, Queue: q.ref(), Resumed: had,
		})
		if had == nil { // what was delivered is only taken up
			r = got
		}
		return unplaced{got}, err
	})
	if err != nil {
		return nil, err
	}
	return &delivery{
		grant: g, done: make(chan struct{}),
		element: wire.Element(r.GetElement()), attempt: int(r.GetAttempt()),
	}, nil
}

func (q *queue) Peek(ctx context.Context) (recipes.Element, error) {
	if err := q.hasDialect(ctx); err != nil {
		return recipes.Element{}, err
	}
	return query(ctx, q.s, q.String(), func(ctx context.Context) (recipes.Element, error) {
		r, err := q.s.queues.PeekElement(ctx, &pb.PeekElementRequest{Session: q.s.handle, Queue: q.ref()})
		return wire.Element(r.GetElement()), err
	})
}

func (q *queue) Len(ctx context.Context) (int, error) {
	if err := q.hasDialect(ctx); err != nil {
		return 0, err
	}
	return query(ctx, q.s, q.String(), func(ctx context.Context) (int, error) {
		r, err := q.s.queues.CountElements(ctx, &pb.CountElementsRequest{Session: q.s.handle, Queue: q.ref()})
		return int(r.GetCount()), err
	})
}

func (q *queue) DeadLetters(ctx context.Context) ([]recipes.Element, error) {
	if err := q.hasDialect(ctx); err != nil {
		return nil, err
	}
	return query(ctx, q.s, q.String(), func(ctx context.Context) ([]recipes.Element, error) {
		r, err := q.s.queues.ListDeadLetters(ctx, &pb.ListDeadLettersRequest{Session: q.s.handle, Queue: q.ref()})
		return wire.Elements(r.GetElements()), err
	})
}
