package server

import (
	"context"
	"fmt"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type queueService struct {
	pb.UnimplementedQueueServiceServer
	*Server
}

// consumer is the taking end of the queue that a message names.
func (ss *session) consumer(q *pb.QueueRef) (recipes.Consumer, error) {
	if q.GetPriority() {
		return ss.PriorityQueue(q.GetPath(), wire.QueueConfig(q))
	}
	return ss.Queue(q.GetPath(), wire.QueueConfig(q))
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
		return nil, wire.ToStatus(err, nil)
	}
	ids, err := ss.put(ctx, r)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.PutElementsResponse{Ids: wire.ToElementIDs(ids)}, nil
}

func (ss *session) put(ctx context.Context, r *pb.PutElementsRequest) ([]recipes.ElementID, error) {
	q := r.GetQueue()
	if q.GetPriority() {
		queue, err := ss.PriorityQueue(q.GetPath(), wire.QueueConfig(q))
		if err != nil {
			return nil, err
		}
		return queue.PutMany(ctx, int(r.GetPriority()), r.GetData()...)
	}
	queue, err := ss.Queue(q.GetPath(), wire.QueueConfig(q))
	if err != nil {
		return nil, err
	}
	return queue.PutMany(ctx, r.GetData()...)
}

func (s queueService) ReceiveElement(ctx context.Context, r *pb.ReceiveElementRequest) (*pb.ReceiveElementResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	c, err := ss.claims.call(ctx, r.GetRequestId(), false, ss.receive(r))
	if err != nil {
		return nil, claimStatus(c, err)
	}
	d, err := deliveryOf(c)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.ReceiveElementResponse{
		Grant: toGrant(c), Element: wire.ToElement(d.Element()), Attempt: int32(d.Attempt()),
	}, nil
}

func (ss *session) receive(r *pb.ReceiveElementRequest) contest {
	return func(ctx context.Context, _ func(recipes.Place)) (*held, error) {
		queue, err := ss.consumer(r.GetQueue())
		if err != nil {
			return nil, err
		}
		d, err := queue.Receive(ctx)
		if err != nil {
			return nil, err
		}
		return &held{Grant: d, giveBack: d.Return}, nil
	}
}

func deliveryOf(c *claim) (recipes.Delivery, error) {
	if d, ok := c.grant.Grant.(recipes.Delivery); ok {
		return d, nil
	}
	return nil, fmt.Errorf("%w: request %s has not received an element", recipes.ErrInvalid, c.id)
}

func (s queueService) AcknowledgeElement(ctx context.Context, r *pb.AcknowledgeElementRequest) (*pb.AcknowledgeElementResponse, error) {
	ss, c, err := s.granted(r.GetSession(), r.GetRequestId())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	d, err := deliveryOf(c)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	err = d.Ack(ctx)
	ss.claims.finished(c)
	return &pb.AcknowledgeElementResponse{}, wire.ToStatus(err, nil)
}

func (s queueService) PeekElement(ctx context.Context, r *pb.PeekElementRequest) (*pb.PeekElementResponse, error) {
	queue, err := s.consumer(r.GetSession(), r.GetQueue())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	e, err := queue.Peek(ctx)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.PeekElementResponse{Element: wire.ToElement(e)}, nil
}

func (s queueService) CountElements(ctx context.Context, r *pb.CountElementsRequest) (*pb.CountElementsResponse, error) {
	queue, err := s.consumer(r.GetSession(), r.GetQueue())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	n, err := queue.Len(ctx)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.CountElementsResponse{Count: int64(n)}, nil
}

func (s queueService) ListDeadLetters(ctx context.Context, r *pb.ListDeadLettersRequest) (*pb.ListDeadLettersResponse, error) {
	queue, err := s.consumer(r.GetSession(), r.GetQueue())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	dead, err := queue.DeadLetters(ctx)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.ListDeadLettersResponse{Elements: wire.ToElements(dead)}, nil
}
