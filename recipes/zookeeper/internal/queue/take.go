package queue

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// errNotAvailable says that an element was deleted, is claimed, or is a dead letter. errBusy says
// that it may become available again.
var (
	errNotAvailable = errors.New("element is not available")
	errBusy         = fmt.Errorf("%w: it is claimed", errNotAvailable)
)

// outrun is the error for an element that another consumer has deleted, claimed or changed since it
// was read.
func outrun(err error) error {
	if errors.Is(err, recipes.ErrNoNode) {
		return errNotAvailable
	}
	return errBusy
}

// candidate is an element that was read, and was not claimed at that version. Every claim
// sets the element's data and so changes the version.
type candidate struct {
	queued
	node session.Node
}

func (c candidate) element() recipes.Element {
	return recipes.Element{
		ID:       recipes.ElementID(c.Name),
		Priority: c.priority,
		Data:     c.node.Data,
		Put:      time.UnixMilli(c.node.Stat.Ctime),
	}
}

// candidate reads an element. If the element was claimed before, candidate then reads the
// last claim. That claim was created together with this version, so if it does not exist
// now, it has ended.
func (q *queue) candidate(ctx context.Context, e queued) (candidate, error) {
	node, err := q.Session.Get(ctx, q.Child(e.Name))
	if errors.Is(err, recipes.ErrNoNode) {
		return candidate{}, errNotAvailable
	}
	if err != nil {
		return candidate{}, err
	}
	if node.Stat.Version > 0 {
		_, err := q.Session.Stat(ctx, q.claim(e.Name, node.Stat.Version))
		if err == nil {
			return candidate{}, errBusy
		}
		if !errors.Is(err, recipes.ErrNoNode) {
			return candidate{}, err
		}
	}
	return candidate{e, node}, nil
}

// claim is the path of an element's claim of that attempt. The name is used once, so a late
// deletion or check cannot apply to another claim.
func (q *queue) claim(name string, attempt int32) string {
	return q.Child(claimsName, name+"-"+strconv.Itoa(int(attempt)))
}

// take calls try with one element after the other until try takes one. If try returns
// errNotAvailable, another consumer has the element.
func (q *queue) take(ctx context.Context, try func(candidate) error) error {
	for {
		e, err := q.listing.pop(ctx)
		if err != nil {
			return err
		}
		c, err := q.candidate(ctx, e)
		if err == nil && q.exhausted(c.node.Stat.Version) {
			err = znode.GivenUp(ctx, q.Session, "bury "+c.Name, q.bury(ctx, c.queued, c.node, ""))
			if err == nil {
				err = errNotAvailable
			}
		}
		if err == nil {
			err = try(c)
		}
		switch {
		case errors.Is(err, errBusy):
			q.listing.isBusy(e)
		case err != nil && !errors.Is(err, errNotAvailable):
			q.listing.giveBack(e)
			return err
		case err == nil:
			return nil
		}
	}
}

func (q *queue) exhausted(deliveries int32) bool {
	return q.cfg.MaxDeliveries > 0 && int(deliveries) >= q.cfg.MaxDeliveries
}

func (q *queue) Take(ctx context.Context) (recipes.Element, error) {
	var taken recipes.Element
	err := q.take(ctx, func(c candidate) error {
		var t session.Txn
		t.Delete(q.Child(c.Name), c.node.Stat.Version)
		_, err := q.commit(ctx, t)
		switch {
		case err == nil:
			taken = c.element()
		case znode.GoneOrChanged(err):
			err = outrun(err)
		case errors.Is(err, recipes.ErrUnknownOutcome):
			err = fmt.Errorf("%s may have been taken, and would be lost: %w", c.Name, err)
		}
		return err
	})
	return taken, q.Failed(err)
}

func (q *queue) Receive(ctx context.Context) (recipes.Delivery, error) {
	if !q.claims() {
		return nil, q.Failed(fmt.Errorf("%w: consumers of %s ignore claims: an element can only be taken", recipes.ErrInvalid, q.cfg.Dialect))
	}
	received, err := znode.Metered(ctx, q.Recipe, func() (*delivery, error) { return q.deliver(ctx) })
	if err != nil {
		return nil, q.Failed(err)
	}
	return received, nil
}

// deliver receives an element that no consumer has claimed.
func (q *queue) deliver(ctx context.Context) (received *delivery, err error) {
	err = q.take(ctx, func(c candidate) error {
		token, err := q.receive(ctx, c)
		if err != nil {
			return err
		}
		attempt := c.node.Stat.Version + 1
		claim := q.claim(c.Name, attempt)
		hold, err := line.NewRevocable(ctx, q.Session, claim, token, nil)
		if err != nil {
			q.Session.Delete(claim)
			return err
		}
		received = &delivery{
			Hold:  hold,
			queue: q, candidate: c, attempt: attempt, done: make(chan struct{}),
		}
		return nil
	})
	return received, err
}

// receive claims an element. If ctx ends first, and the claim succeeds later, the element
// is given back in the background.
func (q *queue) receive(ctx context.Context, c candidate) (recipes.Token, error) {
	return session.Detached(ctx, q.Session, "claim "+c.Name, func(life context.Context) (recipes.Token, error) {
		token, err := q.commitClaim(life, c)
		return token, znode.GivenUp(life, q.Session, "claim "+c.Name, err) // the claim ends with the session
	}, func(context.Context, recipes.Token) {
		q.Session.Delete(q.claim(c.Name, c.node.Stat.Version+1))
	}, nil)
}

// commitClaim creates the claim and counts the delivery in one transaction. To count, it
// sets the element's data, unchanged, which increases the version. ctx ends only with the
// session, and so does the claim: no claim remains whose outcome is unknown.
func (q *queue) commitClaim(ctx context.Context, c candidate) (recipes.Token, error) {
	claim := q.claim(c.Name, c.node.Stat.Version+1)
	var t session.Txn
	t.Set(q.Child(c.Name), c.node.Data, c.node.Stat.Version)
	t.Create(claim, nil, true)
	for {
		outcome, err := q.commit(ctx, t)
		switch {
		case err == nil && outcome.Zxid != 0:
			return recipes.Token(outcome.Zxid), nil
		case err == nil: // the reply was lost, and the receipt could not be read
			stat, err := session.RetryThrottled(ctx, q.Session, func() (session.Stat, error) { return q.Session.Stat(ctx, claim) })
			return recipes.Token(stat.Czxid), err
		case znode.RefusedOp(err) == 0 && znode.GoneOrChanged(err):
			return 0, outrun(err)
		case znode.RefusedOp(err) == 1 && errors.Is(err, recipes.ErrNoNode):
			if err := q.provide(ctx, q.Child(claimsName)); err != nil {
				return 0, err
			}
		default:
			return 0, err
		}
	}
}

// bury moves an element to the dead letters, and deletes its claim if it has one.
func (q *queue) bury(ctx context.Context, e queued, node session.Node, claim string) error {
	var t session.Txn
	if claim != "" {
		t.Delete(claim, recipes.AnyVersion) // first: without the claim, the rest may have changed
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
			return outrun(err)
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

// conclude begins to end the delivery at its first call, and waits until it has ended.
func (d *delivery) conclude(ctx context.Context, ack bool) error {
	d.concluded.Do(func() {
		d.acked = ack
		if !d.Hold.Conclude() {
			lost := d.Hold.Err()
			if errors.Is(lost, session.ErrUnwatched) {
				d.queue.Session.Delete(d.Znode()) // the claim may exist
			}
			d.finish(lost)
			return
		}
		if !d.queue.Session.Background(func(life context.Context) { d.finish(d.end(life, ack)) }) {
			d.finish(fmt.Errorf("%w: %w", recipes.ErrNotHeld, d.queue.Session.Err()))
		}
	})
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
	const ofClaim = 0 // the operation on the claim
	var err error
	switch {
	case ack:
		var t session.Txn
		t.Delete(d.Znode(), recipes.AnyVersion)
		t.Delete(q.Child(d.Name), d.attempt)
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
