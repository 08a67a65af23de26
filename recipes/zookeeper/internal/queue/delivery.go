package queue

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strconv"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

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
			d.finish(d.Hold.Err())
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
	if _, err := line.ResumeHeld(ctx, q.Session, znode, token); err != nil {
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
