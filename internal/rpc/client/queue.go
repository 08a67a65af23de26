package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
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
	return write(ctx, q.recipe, link.AtMostOnce().Abandonable(id), queueService.PutElements, &pb.PutElementsRequest{
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

func (q *queue) Take(ctx context.Context) (recipes.Element, error) {
	return firstOf(q.TakeMany(ctx, 1))
}

// TakeMany makes one call, whose answer has the only copy of the elements. So if the plugin ends
// before it answers, the next one looks for the receipt of their deletion. The call is made again
// only if nothing was deleted.
func (q *queue) TakeMany(ctx context.Context, most int) ([]recipes.Element, error) {
	if err := q.cfg.ValidateBatch(most); err != nil {
		return nil, fmt.Errorf("%s: %w", q, err)
	}
	request := &pb.TakeElementRequest{
		Session: q.s.Handle(), RequestId: q.s.RequestID(), Path: q.path, Dialect: q.dialect, Queue: q.message(),
		Max: int32(most), Receipt: q.s.Resumable(), Received: q.received.all(),
	}
	var t taking
	a, err := link.WriteOrFind(ctx, q.s, q.what, request.RequestId, t.take, t.search, request)
	switch {
	case err == nil && a.GetElement() == nil:
		return nil, fmt.Errorf("%s: %w: the plugin's answer has no element", q, recipes.ErrInternal)
	case err == nil:
		q.received.answered(request)
		return append([]recipes.Element{wire.Element(a.GetElement())}, wire.Each(a.GetOthers(), wire.Element)...), nil
	case t.deleting != "" && errors.Is(err, recipes.ErrUnknownOutcome):
		return nil, fmt.Errorf("%s may have been taken, and would be lost: %w", t.deleting, err)
	}
	return nil, err
}

// taking is a call of TakeMany.
type taking struct {
	deleting string // the elements that the plugin is about to delete, or has deleted; empty once it answers
}

func (t *taking) take(ctx context.Context, request *pb.TakeElementRequest, options ...grpc.CallOption) (*pb.TakeElementResponse, error) {
	t.deleting = ""
	a, err := queueService.TakeElement(carry.WithEarly(ctx, t.read), request, options...)
	if _, answered := wire.Error(err); answered { // an error of the recipe names the elements itself
		t.deleting = ""
	}
	return a, err
}

// read reads an early part of the answer.
func (t *taking) read(part proto.Message) {
	t.deleting = part.(*pb.TakeElementResponse).GetDeleting()
}

// search asks the next plugin what the call has taken.
func (t *taking) search(ctx context.Context, request *pb.TakeElementRequest, options ...grpc.CallOption) (*pb.TakeElementResponse, error) {
	request = proto.CloneOf(request)
	request.Resumed = true
	return queueService.TakeElement(ctx, request, options...)
}

// received are the calls with a receipt whose answers this host has read, although the plugin may
// not know that yet. Their receipts keep the elements until the plugin knows.
type received struct {
	mu  sync.Mutex
	ids []string
}

func (r *received) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ids...)
}

// answered records that a request was answered. So the plugin has read the calls that the request names.
func (r *received) answered(request *pb.TakeElementRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := make(map[string]bool, len(request.Received))
	for _, id := range request.Received {
		known[id] = true
	}
	rest := r.ids[:0]
	for _, id := range r.ids {
		if !known[id] {
			rest = append(rest, id)
		}
	}
	if r.ids = rest; request.Receipt {
		r.ids = append(r.ids, request.RequestId)
	}
}
