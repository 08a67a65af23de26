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

// ReceiveMany asks for all deliveries in one call. Each is then a grant of its own, which the next
// plugin resumes like a grant of Acquire.
func (q *queue) ReceiveMany(ctx context.Context, most int) ([]recipes.Delivery, error) {
	if err := q.cfg.ValidateBatch(most); err != nil {
		return nil, fmt.Errorf("%s: %w", q, err)
	}
	id := q.s.RequestID()
	grants, a, err := link.AcquireMany(ctx, q.s, q.what, "queue", id, queueService.ReceiveElements,
		&pb.ReceiveElementsRequest{Session: q.s.Handle(), RequestId: id, Path: q.path, Dialect: q.dialect, Queue: q.message(), Max: int32(most)},
		func(a *pb.ReceiveElementsResponse) (asked []*pb.AcquireRequest) {
			for i, e := range a.GetElements() {
				asked = append(asked, &pb.AcquireRequest{
					Session: q.s.Handle(), RequestId: wire.DeliveryID(id, i), Path: q.path, Dialect: q.dialect,
					Recipe: &pb.AcquireRequest_Queue{Queue: q.message()}, Resumed: &pb.Grant{Token: e.GetToken(), Znode: e.GetZnode()},
				})
			}
			return asked
		})
	if err != nil {
		return nil, err
	}
	deliveries := make([]recipes.Delivery, len(grants))
	for i, e := range a.GetElements() {
		deliveries[i] = newDelivery(grants[i], e.GetElement(), e.GetAttempt())
	}
	return deliveries, nil
}

func (q *queue) AckMany(ctx context.Context, deliveries ...recipes.Delivery) error {
	all := make([]*delivery, len(deliveries))
	for i, of := range deliveries {
		d, ok := of.(*delivery)
		if !ok || d.Session() != q.s || d.Request().GetPath() != q.path {
			return fmt.Errorf("%s: %w: delivery %d was not received by this session from this queue", q, recipes.ErrInvalid, i)
		}
		all[i] = d
	}
	var begun []*delivery
	for _, d := range all {
		if d.startEnd(true) {
			begun = append(begun, d)
		}
	}
	if len(begun) > 0 {
		q.s.Go(func() { q.ackAll(begun) }) // once the session is closed, the call fails at once
	}
	var errs []error
	for _, d := range all {
		errs = append(errs, d.Ack(ctx)) // waits
	}
	return errors.Join(errs...)
}

// ackAll acknowledges deliveries, and finishes them.
func (q *queue) ackAll(deliveries []*delivery) {
	request := &pb.AcknowledgeElementsRequest{Session: q.s.Handle(), Path: q.path, Dialect: q.dialect, Queue: q.message()}
	for _, d := range deliveries {
		request.RequestIds = append(request.RequestIds, d.ID())
	}
	answer, calls, err := link.Persist(q.s, queueService.AcknowledgeElements, request)
	for i, d := range deliveries {
		result := err
		if err == nil && i < len(answer.GetResults()) {
			result = wire.Result(answer.GetResults()[i])
		} else if err == nil {
			result = fmt.Errorf("%w: the plugin's answer has no result", recipes.ErrInternal)
		}
		d.finish(d.settled(result, calls))
	}
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

func newDelivery(g *link.Grant, e *pb.Element, attempt int32) *delivery {
	return &delivery{Grant: g, element: wire.Element(e), attempt: int(attempt), done: make(chan struct{})}
}

func (d *delivery) Element() recipes.Element { return d.element }
func (d *delivery) Attempt() int             { return d.attempt }

func (d *delivery) Ack(ctx context.Context) error    { return d.conclude(ctx, true) }
func (d *delivery) Return(ctx context.Context) error { return d.conclude(ctx, false) }

// conclude ends the delivery on the first call, and waits for the end. A goroutine of the
// session makes the call to the plugin, which therefore continues when ctx ends.
func (d *delivery) conclude(ctx context.Context, ack bool) error {
	if d.startEnd(ack) {
		d.Session().Go(func() { d.finish(d.call(ack)) }) // once the session is closed, the call fails at once
	}
	if ack != d.acked && errors.Is(d.Err(), recipes.ErrReleased) {
		return d.failed(recipes.ErrReleased)
	}
	if err := link.Outcome(ctx, d.done, &d.result); err != nil {
		return d.failed(err)
	}
	return nil
}

// startEnd starts to end the delivery, at the first call. It reports whether the caller must finish
// it.
func (d *delivery) startEnd(ack bool) (held bool) {
	d.once.Do(func() {
		d.acked = ack
		if reason := d.End(); reason != nil {
			d.finish(reason)
		} else {
			held = true
		}
	})
	return held
}

func (d *delivery) finish(err error) {
	d.result = err
	close(d.done)
}

func (d *delivery) call(ack bool) error {
	if ack {
		_, calls, err := link.Persist(d.Session(), queueService.AcknowledgeElement, &pb.AcknowledgeElementRequest{Session: d.Session().Handle(), RequestId: d.ID()})
		return d.settled(err, calls)
	}
	_, calls, err := link.Persist(d.Session(), grantService.Release, &pb.ReleaseRequest{Session: d.Session().Handle(), RequestId: d.ID()})
	if calls > 1 {
		err = link.IgnoreForgotten(err)
	}
	return d.settled(err, calls)
}

// settled returns the result of a delivery, from the answer to the last of the calls that end it.
func (d *delivery) settled(err error, calls int) error {
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
