package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ReceiveMany asks for all deliveries in one call. Each is then a grant of its own, which the next
// plugin resumes as one of Acquire. A call whose plugin ended is made again: DropRest has returned
// what it had claimed.
func (q *queue) ReceiveMany(ctx context.Context, most int) ([]recipes.Delivery, error) {
	if err := q.cfg.ValidateBatch(most); err != nil {
		return nil, fmt.Errorf("%s: %w", q, err)
	}
	for {
		received, late, err := q.receiveMany(ctx, most)
		if !late {
			return received, err
		}
	}
}

func (q *queue) receiveMany(ctx context.Context, most int) (_ []recipes.Delivery, late bool, _ error) {
	s, w := q.s, &waiter{turns: make(chan turn, 1)}
	id, asked := s.requestID(), time.Now()
	s.expect(id, w)
	defer s.unexpect(id, w)
	ask := &pb.ReceiveElementsRequest{Session: s.handle, RequestId: id, Path: q.path, Dialect: q.dialect, Queue: q.message(), Max: int32(most)}
	var a *pb.ReceiveElementsResponse
	err := s.write(ctx, callOptions{waiter: w, grace: answerTime}.abandonable(id), func(ctx context.Context) (err error) {
		a, err = s.queues.ReceiveElements(ctx, ask)
		return err
	})
	switch {
	case err != nil: // nothing stays claimed, so the outcome is known
		return nil, false, s.explain(ctx, q.what, err)
	case ctx.Err() != nil: // the plugin has learned that, and returns the elements
		s.abandon(id) // unless ctx has ended after the answer
		return nil, false, fmt.Errorf("%s: %w", q, ctx.Err())
	}
	grants, deliveries := make([]*remoteGrant, len(a.GetElements())), make([]recipes.Delivery, len(a.GetElements()))
	for i, e := range a.GetElements() {
		id := wire.DeliveryID(id, i)
		g := &remoteGrant{
			s: s, id: id, recipe: "queue", lost: make(chan struct{}), token: recipes.Token(e.GetToken()), znode: e.GetZnode(),
			request: &pb.AcquireRequest{Session: s.handle, RequestId: id, Path: q.path, Dialect: q.dialect, Recipe: &pb.AcquireRequest_Queue{Queue: q.message()}},
		}
		grants[i], deliveries[i] = g, &delivery{remoteGrant: g, done: make(chan struct{}), element: wire.Element(e.GetElement()), attempt: int(e.GetAttempt())}
	}
	late, err = s.remember(w, grants...)
	if late {
		return nil, true, nil
	}
	for _, g := range grants {
		s.meters.Granted(ctx, "queue", time.Since(asked))
		if err != nil { // the session's end releases it
			g.lose(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: granted too late: %w", q, err)
	}
	return deliveries, false, nil
}

func (q *queue) AckMany(ctx context.Context, deliveries ...recipes.Delivery) error {
	all := make([]*delivery, len(deliveries))
	for i, of := range deliveries {
		d, ok := of.(*delivery)
		if !ok || d.s != q.s || d.request.GetPath() != q.path {
			return fmt.Errorf("%s: %w: delivery %d was not received by this session from this queue", q, recipes.ErrInvalid, i)
		}
		all[i] = d
	}
	var begun []*delivery
	for _, d := range all {
		if d.begin(true) {
			begun = append(begun, d)
		}
	}
	if work := func() { q.ackAll(begun) }; len(begun) > 0 && !q.s.spawn(work) {
		work() // the session is closed, so the call fails at once
	}
	var errs []error
	for _, d := range all {
		errs = append(errs, d.Ack(ctx)) // waits
	}
	return errors.Join(errs...)
}

// ackAll acknowledges deliveries, and finishes them.
func (q *queue) ackAll(deliveries []*delivery) {
	ask := &pb.AcknowledgeElementsRequest{Session: q.s.handle, Path: q.path, Dialect: q.dialect, Queue: q.message()}
	for _, d := range deliveries {
		ask.RequestIds = append(ask.RequestIds, d.id)
	}
	var answer *pb.AcknowledgeElementsResponse
	calls := 0
	err := q.s.persist(q.s.over, callOptions{awaited: true}, func(ctx context.Context) (err error) {
		calls++
		answer, err = q.s.queues.AcknowledgeElements(ctx, ask)
		return err
	})
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
	*remoteGrant
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
	if d.begin(ack) {
		work := func() { d.finish(d.call(ack)) }
		if !d.s.spawn(work) {
			work() // the session is closed, so the call fails at once
		}
	}
	if ack != d.acked && errors.Is(d.Err(), recipes.ErrReleased) {
		return d.failed(recipes.ErrReleased)
	}
	if err := outcome(ctx, d.done, &d.result); err != nil {
		return d.failed(err)
	}
	return nil
}

// begin begins to end the delivery, at its first call. It reports whether the caller must finish it.
func (d *delivery) begin(ack bool) (held bool) {
	d.once.Do(func() {
		d.acked = ack
		if reason := d.endLocally(); reason != nil {
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

// endLocally ends the grant in this process. If it has already ended, endLocally returns the
// reason.
func (d *delivery) endLocally() error {
	if err := d.Err(); err != nil {
		return err
	}
	d.lose(recipes.ErrReleased)
	if err := d.Err(); !errors.Is(err, recipes.ErrReleased) {
		return err
	}
	d.s.unhold(d.id)
	return nil
}

func (d *delivery) call(ack bool) error {
	calls := 0
	err := d.s.persist(d.s.over, callOptions{awaited: true}, func(ctx context.Context) error {
		calls++
		if ack {
			_, err := d.s.queues.AcknowledgeElement(ctx, &pb.AcknowledgeElementRequest{Session: d.s.handle, RequestId: d.id})
			return err
		}
		_, err := d.s.grants.Release(ctx, &pb.ReleaseRequest{Session: d.s.handle, RequestId: d.id})
		return err
	})
	if calls > 1 && !ack {
		err = forgotten(err)
	}
	return d.settled(err, calls)
}

// settled returns the result of a delivery, from the answer to the last of the calls that end it.
func (d *delivery) settled(err error, calls int) error {
	if err == nil || errors.Is(err, recipes.ErrNotHeld) {
		d.s.forget(d.id)
	}
	if errors.Is(err, recipes.ErrSessionLost) || calls > 1 && unexplained(err) { // an earlier call may have succeeded
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
