package queue

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// bury moves an element to the dead letters, and deletes its claim if it has one.
func (q *queue) bury(ctx context.Context, e queued, node session.Node, claim string) error {
	var t session.Txn
	if claim != "" {
		t.Delete(claim, recipes.AnyVersion) // first: without the claim, the element may have changed
	}
	dead := t.Len()
	t.Create(q.Child(deadName, e.Name), node.Data, false)
	t.Delete(q.Child(e.Name), node.Stat.Version)
	for {
		_, err := q.commit(ctx, t)
		switch {
		case znode.RefusedOp(err) == dead && errors.Is(err, recipes.ErrNoNode):
			if err := q.provide(ctx, q.Child(deadName)); err != nil {
				return err
			}
		case claim == "" && znode.RefusedOp(err) == 1 && znode.GoneOrChanged(err):
			if errors.Is(err, recipes.ErrNoNode) {
				return errNotAvailable
			}
			return errBusy
		default:
			return err
		}
	}
}

type delivery struct {
	*line.Hold
	queue *queue
	candidate
	attempt int32

	concluded sync.Once
	acked     bool          // and not returned
	result    error         // set before done is closed
	done      chan struct{} // closed at the end of the first Ack or Return
}

func (d *delivery) Element() recipes.Element { return d.element() }
func (d *delivery) Attempt() int             { return int(d.attempt) }

func (d *delivery) Ack(ctx context.Context) error { return d.conclude(ctx, true) }

func (d *delivery) Return(ctx context.Context) error { return d.conclude(ctx, false) }

// Release is Return, so that a delivery is given back as other grants are.
func (d *delivery) Release(ctx context.Context) error { return d.Return(ctx) }

// conclude starts to end the delivery at the first call, and waits until it has ended.
func (d *delivery) conclude(ctx context.Context, ack bool) error {
	if d.begin(ack) {
		d.queue.background([]*delivery{d}, func(life context.Context) { d.finish(d.end(life, ack)) })
	}
	if ack != d.acked && errors.Is(d.Hold.Err(), recipes.ErrReleased) {
		return d.failed(recipes.ErrReleased)
	}
	select {
	case <-d.done:
	case <-ctx.Done():
		select {
		case <-d.done: // both have happened: prefer the result
		default:
			return d.failed(ctx.Err())
		}
	}
	if d.result != nil {
		return d.failed(d.result)
	}
	return nil
}

// begin starts to end the delivery, at the first call. It reports whether the caller must finish
// it.
func (d *delivery) begin(ack bool) (held bool) {
	d.concluded.Do(func() {
		d.acked = ack
		if held = d.Hold.Conclude(); held {
			return
		}
		lost := d.Hold.Err()
		if errors.Is(lost, session.ErrUnwatched) {
			d.queue.Session.Delete(d.Znode()) // the claim may exist
		}
		d.finish(lost)
	})
	return held
}

// background runs end, which finishes the deliveries, unless the session has ended.
func (q *queue) background(deliveries []*delivery, end func(life context.Context)) {
	if q.Session.Background(end) {
		return
	}
	for _, d := range deliveries {
		d.finish(fmt.Errorf("%w: %w", recipes.ErrNotHeld, q.Session.Err()))
	}
}

func (q *queue) AckMany(ctx context.Context, deliveries ...recipes.Delivery) error {
	all := make([]*delivery, len(deliveries))
	for i, of := range deliveries {
		d, ok := of.(*delivery)
		if !ok || d.queue.Session != q.Session || d.queue.Path() != q.Path() {
			return q.Failed(fmt.Errorf("%w: delivery %d was not received by this session from this queue", recipes.ErrInvalid, i))
		}
		all[i] = d
	}
	var begun []*delivery
	for _, d := range all {
		if d.begin(true) {
			begun = append(begun, d)
		}
	}
	if len(begun) > 0 {
		q.background(begun, func(life context.Context) { q.ackAll(life, begun) })
	}
	var errs []error
	for _, d := range all {
		errs = append(errs, d.Ack(ctx)) // waits
	}
	return errors.Join(errs...)
}

// ackAll deletes the elements of deliveries, in as few transactions as they fit into. A delivery
// whose claim is lost does not keep the others from being acknowledged.
func (q *queue) ackAll(life context.Context, deliveries []*delivery) {
	for len(deliveries) > 0 {
		var t session.Txn
		t.Reserve(claimRoom)
		n := 0
		for _, d := range deliveries {
			next := t
			d.addAck(&next)
			if n > 0 && q.Session.TxnFits(next) != nil {
				break
			}
			t, n = next, n+1
		}
		_, err := session.RetryThrottled(life, q.Session, func() (session.Outcome, error) { return q.commit(life, t) })
		if at := znode.RefusedOp(err); at >= 0 {
			d := deliveries[at/ofAck]
			err, _ := errors.AsType[*session.TxnError](err)
			d.finish(d.settled(&session.TxnError{Index: at % ofAck, Err: err.Err}))
			deliveries = slices.Delete(deliveries, at/ofAck, at/ofAck+1)
			continue
		}
		for _, d := range deliveries[:n] {
			d.finish(d.settled(err))
		}
		deliveries = deliveries[n:]
	}
}

// ofAck is how many operations addAck adds. The first one is on the claim.
const (
	ofAck   = 2
	ofClaim = 0
)

func (d *delivery) addAck(t *session.Txn) {
	t.Delete(d.Znode(), recipes.AnyVersion)
	t.Delete(d.queue.Child(d.Name), d.attempt)
}

func (d *delivery) finish(err error) {
	d.result = err
	close(d.done)
}

func (d *delivery) failed(err error) error {
	what := "return"
	if d.acked {
		what = "acknowledge"
	}
	return d.queue.Failed(fmt.Errorf("%s %s: %w", what, d.Name, err))
}

// end deletes the element, or gives it back, if the claim still exists. It retries while
// the server throttles: the work is done, and would be done again if the element were given
// back.
func (d *delivery) end(life context.Context, ack bool) error {
	q := d.queue
	node := d.node
	node.Stat.Version = d.attempt
	var err error
	switch {
	case ack:
		var t session.Txn
		d.addAck(&t)
		_, err = session.RetryThrottled(life, q.Session, func() (session.Outcome, error) { return q.commit(life, t) })
	case q.exhausted(d.attempt):
		_, err = session.RetryThrottled(life, q.Session, func() (struct{}, error) {
			return struct{}{}, q.bury(life, d.queued, node, d.Znode())
		})
	default:
		err = <-q.Session.Delete(d.Znode())
		if errors.Is(err, recipes.ErrNoNode) {
			return fmt.Errorf("%w: %s", recipes.ErrRemoved, d.Znode())
		}
	}
	return d.settled(err)
}

// settled returns the result of a delivery whose last transaction has ended with err.
func (d *delivery) settled(err error) error {
	q := d.queue
	switch {
	case err == nil:
		return nil
	case errors.Is(err, recipes.ErrSessionLost):
		return fmt.Errorf("%w: %w", recipes.ErrNotHeld, err)
	case znode.RefusedOp(err) == ofClaim && errors.Is(err, recipes.ErrNoNode):
		return fmt.Errorf("%w: %s", recipes.ErrRemoved, d.Znode())
	case znode.GoneOrChanged(err):
		// Another client has deleted the element, or written to it.
		q.Session.Delete(d.Znode())
		return fmt.Errorf("%w: %s", recipes.ErrRemoved, q.Child(d.Name))
	}
	q.Session.Delete(d.Znode())
	return err
}

// Resume resumes a delivery that another process has received in this session: see
// session.Resume. znode and token are the claim's. If the claim does not exist, or if
// another client has written to the element since, the error matches recipes.ErrNotHeld,
// and nothing is changed.
func (q *queue) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.Delivery, error) {
	e, attempt, ok := q.parseClaim(znode)
	if !ok {
		return nil, q.Failed(fmt.Errorf("resume: %w: %q is not a claim of this queue", recipes.ErrInvalid, znode))
	}
	node, err := q.Session.Get(ctx, q.Child(e.Name))
	switch {
	case errors.Is(err, recipes.ErrNoNode), err == nil && node.Stat.Version != attempt:
		return nil, q.Failed(fmt.Errorf("resume: %w: %s was changed by another client", recipes.ErrRemoved, e.Name))
	case err != nil:
		return nil, q.Failed(err)
	}
	if err := line.ResumeHeld(ctx, q.Session, znode, token); err != nil {
		return nil, q.Failed(err)
	}
	return &delivery{
		Hold:  line.Resumed(q.Session, znode, token, nil),
		queue: q, candidate: candidate{e, node}, attempt: attempt, done: make(chan struct{}),
	}, nil
}

// parseClaim is the reverse of claim.
func (q *queue) parseClaim(znode string) (e queued, attempt int32, ok bool) {
	base := gopath.Base(znode)
	at := strings.LastIndex(base, "-")
	if at < 0 {
		return queued{}, 0, false
	}
	number, _ := strconv.ParseInt(base[at+1:], 10, 32) // if it is not a number, the names below differ
	elements := q.parse([]string{base[:at]})
	if len(elements) == 0 || q.claim(elements[0].Name, int32(number)) != znode {
		return queued{}, 0, false
	}
	return elements[0], int32(number), true
}
