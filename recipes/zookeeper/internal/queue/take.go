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

// errNotAvailable says that an element is gone, is claimed, or is a dead letter.
var errNotAvailable = errors.New("element is not available")

// candidate is an element that was read, and was not claimed at that version. Every
// claim sets the element's data, so whatever happens to it changes the version.
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

// candidate reads an element. If the element was claimed before, it then looks for the
// last claim. That claim was created with the version that was read, so if it does not
// exist now, it has ended.
func (q *queue) candidate(ctx context.Context, e queued) (candidate, error) {
	node, err := q.session.Get(ctx, q.child(e.Name))
	if errors.Is(err, recipes.ErrNoNode) {
		return candidate{}, errNotAvailable
	}
	if err != nil {
		return candidate{}, err
	}
	if node.Stat.Version > 0 {
		_, err := q.session.Stat(ctx, q.claim(e.Name, node.Stat.Version))
		if err == nil {
			return candidate{}, errNotAvailable
		}
		if !errors.Is(err, recipes.ErrNoNode) {
			return candidate{}, err
		}
	}
	return candidate{e, node}, nil
}

// claim is the path of an element's claim of that attempt. The name is used once, so a
// deletion or check that comes late cannot hit another claim.
func (q *queue) claim(name string, attempt int32) string {
	return q.child(claimsName, name+"-"+strconv.Itoa(int(attempt)))
}

// take calls try with one element after the other until try takes one. An element for
// which try returns errNotAvailable has gone to another consumer.
func (q *queue) take(ctx context.Context, try func(candidate) error) (err error) {
	defer func() {
		if err != nil {
			// The element that was taken out of the listing may still be in the
			// queue (kazoo PR 501: a failed take blocked though items remained).
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
			err = znode.GivenUp(ctx, q.session, "bury "+c.Name, q.bury(ctx, c.queued, c.node, ""))
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

// exhausted reports whether an element has had all its deliveries.
func (q *queue) exhausted(deliveries int32) bool {
	return q.cfg.MaxDeliveries > 0 && int(deliveries) >= q.cfg.MaxDeliveries
}

func (q *queue) Take(ctx context.Context) (recipes.Element, error) {
	var taken recipes.Element
	err := q.take(ctx, func(c candidate) error {
		var t session.Txn
		t.Delete(q.child(c.Name), c.node.Stat.Version)
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
	if err != nil {
		return recipes.Element{}, q.failed(err)
	}
	return taken, nil
}

func (q *queue) Receive(ctx context.Context) (recipes.Delivery, error) {
	if !q.claims() {
		return nil, q.failed(fmt.Errorf("%w: consumers of %s see no claims: an element can only be taken", recipes.ErrInvalid, q.cfg.Dialect))
	}
	var received recipes.Delivery
	err := q.take(ctx, func(c candidate) error {
		token, err := q.receive(ctx, c)
		if err != nil {
			return err
		}
		attempt := c.node.Stat.Version + 1
		claim := q.claim(c.Name, attempt)
		hold, err := line.NewRevocable(ctx, q.session, claim, token, nil)
		if err != nil {
			q.session.Delete(claim)
			return err
		}
		received = &delivery{
			Hold:  hold,
			queue: q, candidate: c, attempt: attempt, done: make(chan struct{}),
		}
		return nil
	})
	if err != nil {
		return nil, q.failed(err)
	}
	return received, nil
}

// receive claims an element. If ctx ends first, a claim that succeeds later is given
// back in the background.
func (q *queue) receive(ctx context.Context, c candidate) (recipes.Token, error) {
	type result struct {
		token recipes.Token
		err   error
	}
	done := make(chan result)
	q.session.Background(func(life context.Context) {
		token, err := q.commitClaim(life, c)
		err = znode.GivenUp(life, q.session, "claim "+c.Name, err) // the claim ends with the session
		select {
		case done <- result{token, err}:
		case <-ctx.Done():
			if err == nil {
				q.session.Delete(q.claim(c.Name, c.node.Stat.Version+1))
			}
		case <-life.Done():
		}
	})
	select {
	case r := <-done:
		return r.token, r.err
	case <-q.session.Done():
		return 0, q.session.Err()
	case <-ctx.Done():
		return 0, q.session.Interrupted("claim "+c.Name, ctx)
	}
}

// commitClaim creates the claim and counts the delivery in one transaction. It sets the
// element's data unchanged, which increases its version. ctx is the session's life: a claim
// that is made is known.
func (q *queue) commitClaim(ctx context.Context, c candidate) (recipes.Token, error) {
	claim := q.claim(c.Name, c.node.Stat.Version+1)
	var t session.Txn
	t.Set(q.child(c.Name), c.node.Data, c.node.Stat.Version)
	t.Create(claim, nil, true)
	for {
		outcome, err := q.commit(ctx, t)
		switch {
		case err == nil && outcome.Zxid != 0:
			return recipes.Token(outcome.Zxid), nil
		case err == nil: // the reply was lost, and the receipt could not be read
			stat, err := session.Insist(ctx, q.session, func() (session.Stat, error) { return q.session.Stat(ctx, claim) })
			return recipes.Token(stat.Czxid), err
		case znode.RefusedOp(err) == 0 && znode.GoneOrChanged(err):
			return 0, errNotAvailable
		case znode.RefusedOp(err) == 1 && errors.Is(err, recipes.ErrNoNode):
			if err := q.provide(ctx, q.child(claimsName)); err != nil {
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
		t.Delete(claim, recipes.AnyVersion) // first: if it is gone, the rest may have changed too
	}
	dead := t.Len()
	t.Create(q.child(deadName, e.Name), node.Data, false)
	t.Delete(q.child(e.Name), node.Stat.Version)
	for {
		_, err := q.commit(ctx, t)
		switch {
		case znode.RefusedOp(err) == dead && errors.Is(err, recipes.ErrNoNode):
			if err := q.provide(ctx, q.child(deadName)); err != nil {
				return err
			}
		case claim == "" && znode.RefusedOp(err) == 1 && znode.GoneOrChanged(err):
			return errNotAvailable
		default:
			return err
		}
	}
}
