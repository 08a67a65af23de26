package server

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type queueService struct {
	pb.UnimplementedQueueServiceServer
	*Server
}

// consumer is the taking end of the queue that a message names.
func (ss *session) consumer(q *pb.QueueRef) (recipes.Consumer, error) {
	cfg, err := wire.QueueConfig(q)
	if err != nil {
		return nil, err
	}
	if q.GetPriority() {
		return ss.PriorityQueue(q.GetPath(), cfg)
	}
	return ss.Queue(q.GetPath(), cfg)
}

func (s *Server) consumer(handle string, q *pb.QueueRef) (recipes.Consumer, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, err
	}
	return ss.consumer(q)
}

func (s queueService) PutElements(ctx context.Context, r *pb.PutElementsRequest) (*pb.PutElementsResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	ids, err := ss.put(ctx, r)
	return &pb.PutElementsResponse{Ids: wire.ToElementIDs(ids)}, err
}

func (ss *session) put(ctx context.Context, r *pb.PutElementsRequest) ([]recipes.ElementID, error) {
	ctx, cancel := ss.tickets.abandonable(ctx, r.GetRequestId())
	defer cancel()
	q := r.GetQueue()
	if q.GetCapacity() > 0 { // it may wait for room
		var cancel context.CancelFunc
		ctx, cancel = early(ctx)
		defer cancel()
	}
	consumer, err := ss.consumer(q)
	if err != nil {
		return nil, err
	}
	if queue, ok := consumer.(recipes.PriorityQueue); ok && q.GetPriority() {
		return queue.PutMany(ctx, int(r.GetPriority()), r.GetData()...)
	}
	queue, ok := consumer.(recipes.Queue)
	if !ok {
		return nil, fmt.Errorf("%w: %T is no queue", recipes.ErrInternal, consumer)
	}
	return queue.PutMany(ctx, r.GetData()...)
}

func (s queueService) TakeElement(ctx context.Context, r *pb.TakeElementRequest) (*pb.TakeElementResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	queue, err := ss.consumer(r.GetQueue())
	if err != nil {
		return nil, err
	}
	ctx, cancel := ss.patient(ctx, r)
	defer cancel()
	e, err := queue.Take(ctx)
	return &pb.TakeElementResponse{Element: wire.ToElement(e)}, err
}

func (s queueService) ReceiveElement(ctx context.Context, r *pb.ReceiveElementRequest) (*pb.ReceiveElementResponse, error) {
	c, err := s.contend(ctx, r, false, func(ctx context.Context, ss *session, _ func(recipes.Place)) (*held, error) {
		queue, err := ss.consumer(r.GetQueue())
		if err != nil {
			return nil, err
		}
		var d recipes.Delivery
		if had := r.GetResumed(); had != nil {
			d, err = takeUp[recipes.Delivery](ctx, queue, had, false)
		} else {
			d, err = queue.Receive(ctx)
		}
		if err != nil {
			return nil, err
		}
		return &held{Grant: d, giveBack: d.Return}, nil
	})
	if err != nil {
		return nil, err
	}
	d, err := deliveryOf(c)
	if err != nil {
		return nil, err
	}
	return &pb.ReceiveElementResponse{
		Grant: toGrant(c), Element: wire.ToElement(d.Element()), Attempt: int32(d.Attempt()),
	}, nil
}

func deliveryOf(c *ticket) (recipes.Delivery, error) {
	return as[recipes.Delivery](c, "no element")
}

func (s queueService) AcknowledgeElement(ctx context.Context, r *pb.AcknowledgeElementRequest) (*pb.AcknowledgeElementResponse, error) {
	ss, c, err := s.granted(r)
	if err != nil {
		return nil, err
	}
	d, err := deliveryOf(c)
	if err != nil {
		return nil, err
	}
	err = d.Ack(ctx)
	ss.tickets.finished(c)
	return &pb.AcknowledgeElementResponse{}, err
}

func (s queueService) PeekElement(ctx context.Context, r *pb.PeekElementRequest) (*pb.PeekElementResponse, error) {
	queue, err := s.consumer(r.GetSession(), r.GetQueue())
	if err != nil {
		return nil, err
	}
	e, err := queue.Peek(ctx)
	return &pb.PeekElementResponse{Element: wire.ToElement(e)}, err
}

func (s queueService) CountElements(ctx context.Context, r *pb.CountElementsRequest) (*pb.CountElementsResponse, error) {
	queue, err := s.consumer(r.GetSession(), r.GetQueue())
	if err != nil {
		return nil, err
	}
	n, err := queue.Len(ctx)
	return &pb.CountElementsResponse{Count: int64(n)}, err
}

func (s queueService) ListDeadLetters(ctx context.Context, r *pb.ListDeadLettersRequest) (*pb.ListDeadLettersResponse, error) {
	queue, err := s.consumer(r.GetSession(), r.GetQueue())
	if err != nil {
		return nil, err
	}
	dead, err := queue.DeadLetters(ctx)
	return &pb.ListDeadLettersResponse{Elements: wire.ToElements(dead)}, err
}
