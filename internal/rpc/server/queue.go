package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
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
	if r.GetQueue().GetCapacity() > 0 { // the put may wait for capacity
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

// receiptTaker is a consumer that keeps what it has taken in a receipt, for the plugin that resumes the
// session.
type receiptTaker interface {
	TakeNoted(ctx context.Context, most int, id string, deletes func(elements string)) (taken []recipes.Element, release func(), err error)
	Taken(ctx context.Context, id string) ([]recipes.Element, error)
}

func (s service) TakeElement(ctx context.Context, r *pb.TakeElementRequest) (*pb.TakeElementResponse, error) {
	return withAbandonable(ctx, s.Server, r, consumer(r), func(ctx context.Context, ss *session, q recipes.Consumer) (*pb.TakeElementResponse, error) {
		ss.takes.received(r.GetReceived())
		taken, err := ss.take(ctx, q, r)
		if err != nil {
			return nil, err
		}
		return &pb.TakeElementResponse{Element: wire.ToElement(taken[0]), Others: wire.Each(taken[1:], wire.ToElement)}, nil
	})
}

func (ss *session) take(ctx context.Context, q recipes.Consumer, r *pb.TakeElementRequest) ([]recipes.Element, error) {
	most, id := max(1, int(r.GetMax())), r.GetRequestId()
	n, ok := q.(receiptTaker)
	switch {
	case r.GetResumed() && ss.resumption.over():
		return nil, errTooLate
	case r.GetResumed() && ok:
		taken, err := n.Taken(ctx, id)
		if err == nil && len(taken) == 0 {
			err = fmt.Errorf("%w: request %s has taken no element", recipes.ErrNotHeld, id)
		}
		return taken, err
	case r.GetResumed():
		return nil, errNotResumed
	case !ok:
		return q.TakeMany(ctx, most)
	case !r.GetReceipt():
		id = ""
	case id == "":
		return nil, fmt.Errorf("%w: a receipt needs a request_id", recipes.ErrInvalid)
	}
	early := carry.Early(ctx)
	taken, release, err := n.TakeNoted(ctx, most, id, func(elements string) {
		if early != nil {
			early(&pb.TakeElementResponse{Deleting: elements})
		}
	})
	if err == nil && id != "" {
		ss.takes.add(id, release)
	}
	return taken, err
}

// takes are the takes of a session whose answers may not have reached the host. A receipt that has
// their elements must not be used again: if this plugin ended, the elements would be lost.
type takes struct {
	mu       sync.Mutex
	releases map[string]func() // by request id
}

func (t *takes) add(id string, release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.releases == nil {
		t.releases = make(map[string]func())
	}
	t.releases[id] = release
}

// received releases the receipts of takes whose answers the host has read.
func (t *takes) received(ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if release := t.releases[id]; release != nil {
			release()
			delete(t.releases, id)
		}
	}
}

func receiveElement(ctx context.Context, t target, r *pb.AcquireRequest) (*grant, error) {
	q, err := consumer(r)(t)
	if err != nil {
		return nil, err
	}
	return grantOf(ctx, r, q, q.Receive, nil, recipes.Delivery.Return)
}

// ReceiveElements registers each delivery as the grant of a request of its own. From then on they are
// like those of Acquire.
func (s service) ReceiveElements(ctx context.Context, r *pb.ReceiveElementsRequest) (*pb.ReceiveElementsResponse, error) {
	return withAbandonable(ctx, s.Server, r, consumer(r), func(ctx context.Context, ss *session, q recipes.Consumer) (*pb.ReceiveElementsResponse, error) {
		if err := ss.resumption.allows(nil); err != nil {
			return nil, err
		}
		most, err := ss.acquisitions.room(max(1, int(r.GetMax())))
		if err != nil {
			return nil, err
		}
		received, err := q.ReceiveMany(ctx, most)
		if err != nil {
			return nil, err
		}
		a, n := new(pb.ReceiveElementsResponse), len(received)
		for i, d := range received {
			ss.acquisitions.add(wire.DeliveryID(r.GetRequestId(), i), &grant{Grant: d, release: d.Return})
			a.Elements = append(a.Elements, wire.ToReceivedElement(d))
		}
		if ss.acquisitions.undoable(ctx, r.GetRequestId(), func() { ss.acquisitions.abandonAll(r.GetRequestId(), n) }) != nil {
			return nil, fmt.Errorf("%d elements were received, and are given back: %w", n, ctx.Err())
		}
		return a, nil
	})
}

const noElement = "no element"

func (s service) AcknowledgeElement(ctx context.Context, r *pb.AcknowledgeElementRequest) (*pb.AcknowledgeElementResponse, error) {
	return &pb.AcknowledgeElementResponse{}, withGrant(s.Server, r, noElement, func(ss *session, c *acquisition, d recipes.Delivery) error {
		err := d.Ack(ctx)
		ss.acquisitions.finished(c)
		return err
	})
}

func (s service) AcknowledgeElements(ctx context.Context, r *pb.AcknowledgeElementsRequest) (*pb.AcknowledgeElementsResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	results := make([]error, len(r.GetRequestIds()))
	found := make([]*acquisition, len(results))
	var all []recipes.Delivery
	for i, id := range r.GetRequestIds() {
		var d recipes.Delivery
		if found[i], results[i] = ss.acquisitions.granted(id); results[i] == nil {
			if d, results[i] = as[recipes.Delivery](found[i], noElement); results[i] == nil {
				all = append(all, d)
			}
		}
	}
	_, _ = with(s.Server, r, consumer(r), func(q recipes.Consumer) (struct{}, error) { return struct{}{}, q.AckMany(ctx, all...) })
	if err := ctx.Err(); err != nil {
		return nil, err // the acknowledgement continues, and the repeated call gets its results
	}
	a := new(pb.AcknowledgeElementsResponse)
	for i, c := range found {
		if results[i] == nil {
			results[i] = c.grant.Grant.(recipes.Delivery).Ack(ctx)
			ss.acquisitions.finished(c)
		}
		a.Results = append(a.Results, wire.ToResult(results[i]))
	}
	return a, nil
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
