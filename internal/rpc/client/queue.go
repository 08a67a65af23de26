package client

import (
	"context"
	"fmt"

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
	received *received // of the session
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
	return &queue{r, cfg, priority, &s.received}, err
}

func (q fifo) Put(ctx context.Context, data []byte) (recipes.ElementID, error) {
	return firstOf(q.put(ctx, 0, [][]byte{data}))
}

func (q fifo) PutMany(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error) {
	return q.put(ctx, 0, data)
}

func (q byPriority) Put(ctx context.Context, priority int, data []byte) (recipes.ElementID, error) {
	return firstOf(q.put(ctx, priority, [][]byte{data}))
}

func (q byPriority) PutMany(ctx context.Context, priority int, data ...[]byte) ([]recipes.ElementID, error) {
	return q.put(ctx, priority, data)
}

func firstOf[T any](all []T, err error) (none T, _ error) {
	if err != nil {
		return none, err
	}
	return all[0], nil
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

func (q *queue) Receive(ctx context.Context) (recipes.Delivery, error) {
	g, a, err := q.acquire(ctx, "queue", &pb.AcquireRequest{Recipe: &pb.AcquireRequest_Queue{Queue: q.message()}}, nil)
	if err != nil {
		return nil, err
	}
	d := a.GetDelivery()
	return newDelivery(g, d.GetElement(), d.GetAttempt()), nil
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
