package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// errNotAvailable says that an element was deleted, is claimed, or is a dead letter.
var errNotAvailable = errors.New("element is not available")

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
			return candidate{}, errNotAvailable
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
func (q *queue) take(ctx context.Context, try func(candidate) error) (err error) {
	defer func() {
		if err != nil {
			// The element was taken out of the listing, but may still be in the queue.
			// (In kazoo PR 501, a failed take blocked although elements remained.)
			q.listing.dirty.Store(true)
		}
	}()
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
		if !errors.Is(err, errNotAvailable) {
			return err
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
			err = errNotAvailable
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
	var received recipes.Delivery
	err := q.take(ctx, func(c candidate) error {
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
	return received, q.Failed(err)
}

// receive claims an element. If ctx ends first, and the claim succeeds later, the element
// is given back in the background.
func (q *queue) receive(ctx context.Context, c candidate) (recipes.Token, error) {
	type result struct {
		token recipes.Token
		err   error
	}
	done := make(chan result)
	q.Session.Background(func(life context.Context) {
		token, err := q.commitClaim(life, c)
		err = znode.GivenUp(life, q.Session, "claim "+c.Name, err) // the claim ends with the session
		select {
		case done <- result{token, err}:
		case <-ctx.Done():
			if err == nil {
				q.Session.Delete(q.claim(c.Name, c.node.Stat.Version+1))
			}
		case <-life.Done():
		}
	})
	select {
	case r := <-done:
		return r.token, r.err
	case <-q.Session.Done():
		return 0, q.Session.Err()
	case <-ctx.Done():
		return 0, q.Session.Interrupted("claim "+c.Name, ctx)
	}
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
			return 0, errNotAvailable
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
			return errNotAvailable
		default:
			return err
		}
	}
}
