package server

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// consumer opens the queue of a request, for receiving.
func consumer(r interface{ GetQueue() *pb.Queue }) func(target) (recipes.Consumer, error) {
	return func(t target) (recipes.Consumer, error) {
		cfg := wire.QueueConfig(r.GetQueue(), t.dialect)
		if r.GetQueue().GetPriority() {
			return t.PriorityQueue(t.path, cfg)
		}
		return t.Queue(t.path, cfg)
	}
}

func (s service) PutElements(ctx context.Context, r *pb.PutElementsRequest) (*pb.PutElementsResponse, error) {
	t, err := s.target(r)
	if err != nil {
		return nil, err
	}
	ctx, end := t.acquisitions.abandonable(ctx, r.GetRequestId())
	defer end()
	if r.GetQueue().GetCapacity() > 0 { // it may wait for capacity
		var cancel context.CancelFunc
		ctx, cancel = withTimeToAnswer(ctx)
		defer cancel()
	}
	queue, err := consumer(r)(t)
	if err != nil {
		return nil, err
	}
	ids, err := put(ctx, queue, r)
	return &pb.PutElementsResponse{Ids: wire.Strings[string](ids)}, err
}

func put(ctx context.Context, queue recipes.Consumer, r *pb.PutElementsRequest) ([]recipes.ElementID, error) {
	if q, ok := queue.(recipes.PriorityQueue); ok && r.GetQueue().GetPriority() {
		return q.PutMany(ctx, int(r.GetPriority()), r.GetData()...)
	}
	q, ok := queue.(recipes.Queue)
	if !ok {
		return nil, fmt.Errorf("%w: %T is not a queue", recipes.ErrInternal, queue)
	}
	return q.PutMany(ctx, r.GetData()...)
}

func (s service) TakeElement(ctx context.Context, r *pb.TakeElementRequest) (*pb.TakeElementResponse, error) {
	e, err := patiently(ctx, s.Server, r, consumer(r), func(ctx context.Context, _ *session, q recipes.Consumer) (recipes.Element, error) {
		return q.Take(ctx)
	})
	return &pb.TakeElementResponse{Element: wire.ToElement(e)}, err
}

func queueRunner(r *pb.AcquireRequest) runner {
	open := func(t target, _ func(recipes.Place)) (recipes.Consumer, error) { return consumer(r)(t) }
	return granting(r, open, waiting(r, recipes.Consumer.Receive), recipes.Delivery.Return)
}

const noElement = "no element"

func (s service) AcknowledgeElement(ctx context.Context, r *pb.AcknowledgeElementRequest) (*pb.AcknowledgeElementResponse, error) {
	return &pb.AcknowledgeElementResponse{}, withGrant(s.Server, r, noElement, func(ss *session, c *acquisition, d recipes.Delivery) error {
		err := d.Ack(ctx)
		ss.acquisitions.finished(c)
		return err
	})
}

func (s service) PeekElement(ctx context.Context, r *pb.PeekElementRequest) (*pb.PeekElementResponse, error) {
	e, err := with(s.Server, r, consumer(r), func(q recipes.Consumer) (recipes.Element, error) { return q.Peek(ctx) })
	return &pb.PeekElementResponse{Element: wire.ToElement(e)}, err
}

func (s service) CountElements(ctx context.Context, r *pb.CountElementsRequest) (*pb.CountElementsResponse, error) {
	n, err := with(s.Server, r, consumer(r), func(q recipes.Consumer) (int, error) { return q.Len(ctx) })
	return &pb.CountElementsResponse{Count: int64(n)}, err
}

func (s service) ListDeadLetters(ctx context.Context, r *pb.ListDeadLettersRequest) (*pb.ListDeadLettersResponse, error) {
	dead, err := with(s.Server, r, consumer(r), func(q recipes.Consumer) ([]recipes.Element, error) { return q.DeadLetters(ctx) })
	return &pb.ListDeadLettersResponse{Elements: wire.Each(dead, wire.ToElement)}, err
}
