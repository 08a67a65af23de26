package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

func (q *queue) Take(ctx context.Context) (recipes.Element, error) {
	return firstOf(q.TakeMany(ctx, 1))
}

func (q *queue) TakeMany(ctx context.Context, most int) ([]recipes.Element, error) {
	taken, _, err := q.takeMany(ctx, most, func(b *batch) (none func(), err error) {
		_, err = q.commit(ctx, b.txn)
		return none, err
	})
	return taken, err
}

// TakeNoted is TakeMany for a process that takes the elements for another one. It keeps the
// elements in the receipt of their deletion, under an id that the session uses once: see Taken.
// It calls begins with the names of the elements that it is about to delete, each time that it
// tries. The
// caller must call release when the elements have reached the other process. Without an id it keeps
// nothing.
func (q *queue) TakeNoted(ctx context.Context, most int, id string, begins func(elements string)) (taken []recipes.Element, release func(), err error) {
	return q.takeMany(ctx, most, func(b *batch) (release func(), err error) {
		begins(b.names())
		if id == "" {
			_, err := q.commit(ctx, b.txn)
			return func() {}, err
		}
		_, release, err = q.Session.CommitWithNote(ctx, q.receipts(), q.provide, b.txn, b.note(id))
		return release, err
	})
}

// Taken returns the elements that TakeNoted has taken under the id in a session that another
// process has served before. It works until DropRest. If it returns none, that TakeNoted has
// taken nothing, and never will.
func (q *queue) Taken(ctx context.Context, id string) ([]recipes.Element, error) {
	notes, err := q.Session.Notes(ctx, q.receipts())
	if err != nil {
		return nil, q.Failed(err)
	}
	for _, note := range notes {
		of, taken, err := q.parseNote(note)
		if err != nil {
			return nil, q.Failed(err)
		}
		if of == id {
			return taken, nil
		}
	}
	return nil, nil
}

func (q *queue) takeMany(ctx context.Context, most int, commit func(*batch) (release func(), err error)) (taken []recipes.Element, release func(), err error) {
	err = q.take(ctx, most, func(t *session.Txn, c candidate) {
		t.Delete(q.Child(c.Name), c.node.Stat.Version)
		t.Reserve(noteSlack + len(c.Name) + len(c.node.Data)) // even without a note: it bounds the memory
	}, func(b *batch) (err error) {
		release, err = commit(b)
		switch {
		case err == nil:
			taken = b.taken()
		case znode.GoneOrChanged(err):
			err = outrun{znode.RefusedOp(err), errors.Is(err, recipes.ErrNoNode)}
		case errors.Is(err, recipes.ErrUnknownOutcome):
			err = fmt.Errorf("%s may have been taken, and would be lost: %w", b.names(), err)
		}
		return err
	})
	return taken, release, q.Failed(err)
}

func firstOf[T any](all []T, err error) (none T, _ error) {
	if err != nil {
		return none, err
	}
	return all[0], nil
}

// noteFormat is the first number of a note. Each other format has another number.
const noteFormat = 1

// noteSlack is the room for the numbers of one element in a note.
const noteSlack = 16

// note encodes the elements of a batch for parseNote, which may run in another process.
func (b *batch) note(id string) []byte {
	var e jute.Encoder
	e.Int32(noteFormat)
	e.String(id)
	for _, c := range b.elements {
		e.String(c.Name)
		e.Int64(c.node.Stat.Ctime)
		e.Buffer(c.node.Data)
	}
	return e.Bytes
}

func (q *queue) parseNote(note []byte) (id string, taken []recipes.Element, err error) {
	d := jute.Decoder{Bytes: note}
	format := d.Int32()
	id = d.String()
	for len(d.Bytes) > 0 && d.Err == nil {
		var c candidate
		name := d.String()
		c.node.Stat.Ctime, c.node.Data = d.Int64(), d.Buffer()
		for _, c.queued = range q.parse([]string{name}) {
			taken = append(taken, c.element())
		}
	}
	if d.Err != nil || format != noteFormat {
		return "", nil, fmt.Errorf("%w: the note in a receipt of the queue is of a newer plugin", recipes.ErrUnsupported)
	}
	return id, taken, nil
}

func (q *queue) Receive(ctx context.Context) (recipes.Delivery, error) {
	return firstOf(q.ReceiveMany(ctx, 1))
}

func (q *queue) ReceiveMany(ctx context.Context, most int) ([]recipes.Delivery, error) {
	if !q.claims() {
		return nil, q.Failed(fmt.Errorf("%w: consumers of %s ignore claims: an element can only be taken", recipes.ErrInvalid, q.cfg.Dialect))
	}
	received, err := znode.MeteredMany(ctx, q.Recipe, func() ([]*delivery, error) { return q.deliver(ctx, most) })
	if err != nil {
		return nil, q.Failed(err)
	}
	all := make([]recipes.Delivery, len(received))
	for i, d := range received {
		all[i] = d
	}
	return all, nil
}

// deliver receives elements that no consumer has claimed.
func (q *queue) deliver(ctx context.Context, most int) (received []*delivery, err error) {
	err = q.take(ctx, most, func(t *session.Txn, c candidate) {
		t.Set(q.Child(c.Name), c.node.Data, c.node.Stat.Version)
		t.Create(q.nextClaim(c), nil, true)
	}, func(b *batch) error {
		token, err := q.receive(ctx, b)
		if err != nil {
			return err
		}
		for _, c := range b.elements {
			hold, err := line.NewRevocable(ctx, q.Session, q.nextClaim(c), token, nil)
			if err != nil {
				for _, d := range received {
					d.Hold.Conclude()
				}
				q.unclaim(b)
				return err
			}
			received = append(received, &delivery{
				Hold:  hold,
				queue: q, candidate: c, attempt: c.node.Stat.Version + 1, done: make(chan struct{}),
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return received, nil
}

// receive claims the elements of a batch. If ctx ends first, and the claims succeed later, the
// elements are given back in the background.
func (q *queue) receive(ctx context.Context, b *batch) (recipes.Token, error) {
	what := "claim " + b.names()
	return session.Detached(ctx, q.Session, what, func(life context.Context) (recipes.Token, error) {
		token, err := q.commitClaims(life, b)
		return token, znode.GivenUp(life, q.Session, what, err) // the claims end with the session
	}, func(context.Context, recipes.Token) { q.unclaim(b) }, nil)
}

// unclaim deletes the claims of a batch in the background.
func (q *queue) unclaim(b *batch) {
	for _, c := range b.elements {
		q.Session.Delete(q.nextClaim(c))
	}
}

// commitClaims creates the claims and counts the deliveries in one transaction. To count, it
// sets the data of each element, unchanged, which increases the version. ctx ends only with the
// session, and the claims end with it too. So no claim remains whose outcome is unknown.
func (q *queue) commitClaims(ctx context.Context, b *batch) (recipes.Token, error) {
	for {
		outcome, err := q.commit(ctx, b.txn)
		at := znode.RefusedOp(err) // each element has two operations: the count and the claim
		switch {
		case err == nil && outcome.Zxid != 0:
			return recipes.Token(outcome.Zxid), nil
		case err == nil: // the reply was lost, and the receipt could not be read
			stat, err := session.RetryThrottled(ctx, q.Session, func() (session.Stat, error) {
				return q.Session.Stat(ctx, q.nextClaim(b.elements[0]))
			})
			return recipes.Token(stat.Czxid), err
		case at%2 == 0 && znode.GoneOrChanged(err):
			return 0, outrun{at / 2, errors.Is(err, recipes.ErrNoNode)}
		case at%2 == 1 && errors.Is(err, recipes.ErrNoNode):
			if err := q.provide(ctx, q.Child(claimsName)); err != nil {
				return 0, err
			}
		default:
			return 0, err
		}
	}
}
