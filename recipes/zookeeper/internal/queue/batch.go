package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// errNotAvailable means that an element was deleted, is claimed, or is a dead letter. errBusy
// means that it may become available again.
var (
	errNotAvailable = errors.New("element is not available")
	errBusy         = fmt.Errorf("%w: it is claimed", errNotAvailable)
)

// outrun is the error for a batch in which another consumer has deleted, claimed or changed an
// element since it was read.
type outrun struct {
	element int // the number in the batch
	gone    bool
}

func (o outrun) Error() string {
	return fmt.Sprintf("%v: number %d of the batch", errNotAvailable, o.element)
}

// candidate is an element as it was read. At that version no consumer had claimed it. Every claim
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

// A reading is an element that was read. err is nil, errNotAvailable or errBusy.
type reading struct {
	candidate
	err error
}

// read reads elements. If an element was claimed before, read then reads the last claim. That
// claim was created together with this version, so if it does not exist now, it has ended.
func (q *queue) read(ctx context.Context, elements []queued) ([]reading, error) {
	paths := make([]string, len(elements))
	for i, e := range elements {
		paths[i] = q.Child(e.Name)
	}
	nodes, err := q.Session.GetAll(ctx, paths)
	if err != nil {
		return nil, err
	}
	all := make([]reading, len(elements))
	var claims []string
	var claimed []int // the numbers of their elements
	for i, n := range nodes {
		all[i].candidate = candidate{elements[i], n.Value}
		switch {
		case errors.Is(n.Err, recipes.ErrNoNode):
			all[i].err = errNotAvailable
		case n.Err != nil:
			return nil, n.Err
		case n.Value.Stat.Version > 0:
			claims, claimed = append(claims, q.claim(elements[i].Name, n.Value.Stat.Version)), append(claimed, i)
		}
	}
	stats, err := q.Session.StatAll(ctx, claims)
	if err != nil {
		return nil, err
	}
	for i, s := range stats {
		switch {
		case s.Err == nil:
			all[claimed[i]].err = errBusy
		case !errors.Is(s.Err, recipes.ErrNoNode):
			return nil, s.Err
		}
	}
	return all, nil
}

// claim is the path of an element's claim of that attempt. The name is used once, so a late
// deletion or check cannot apply to another claim.
func (q *queue) claim(name string, attempt int32) string {
	return q.Child(claimsName, name+"-"+strconv.Itoa(int(attempt)))
}

// nextClaim is the path of the claim of an element that is available.
func (q *queue) nextClaim(c candidate) string { return q.claim(c.Name, c.node.Stat.Version+1) }

// A batch has elements to be taken or claimed together, and the transaction that does so.
type batch struct {
	elements []candidate
	txn      session.Txn
}

// names names the elements in an error: all of a few, or the first and the last.
func (b *batch) names() string {
	first, last := b.elements[0].Name, b.elements[len(b.elements)-1].Name
	switch n := len(b.elements); n {
	case 1:
		return first
	case 2:
		return first + " and " + last
	default:
		return fmt.Sprintf("%d elements from %s to %s", n, first, last)
	}
}

func (b *batch) taken() []recipes.Element {
	taken := make([]recipes.Element, len(b.elements))
	for i, c := range b.elements {
		taken[i] = c.element()
	}
	return taken
}

// take calls try with up to most elements, until try takes them. Each element adds its operations
// to the transaction by add. If try returns an outrun, another consumer was faster, and take tries
// again.
func (q *queue) take(ctx context.Context, most int, add func(*session.Txn, candidate), try func(*batch) error) error {
	if err := q.cfg.ValidateBatch(most); err != nil {
		return err
	}
	for {
		b, err := q.gather(ctx, most, add)
		if err == nil {
			err = try(b)
		}
		if err == nil {
			return nil
		}
		var other outrun
		again := errors.As(err, &other)
		for i, c := range b.elements {
			switch {
			case !again || i != other.element:
				q.listing.giveBack(c.queued)
			case !other.gone:
				q.listing.isBusy(c.queued)
			}
		}
		if !again {
			return err
		}
	}
}

// gather pops and reads elements until it has most of them, the next one does not fit into the
// packet, or a read finds that other consumers have taken some. It waits for the first one only. The
// elements that are returned, even with an error, are no longer in the listing.
func (q *queue) gather(ctx context.Context, most int, add func(*session.Txn, candidate)) (*batch, error) {
	b := new(batch)
	b.txn.Reserve(claimRoom)
	for len(b.elements) < most {
		popped, err := q.listing.pop(ctx, min(most-len(b.elements), q.listing.window(q.Session.MaxPacket())), len(b.elements) == 0)
		if err != nil || len(popped) == 0 {
			return b, err
		}
		found, err := q.available(ctx, popped)
		if err != nil {
			for _, e := range popped {
				q.listing.giveBack(e)
			}
			return b, err
		}
		for i, c := range found {
			next := b.txn
			add(&next, c)
			if len(b.elements) > 0 && q.Session.TxnFits(next) != nil {
				for _, c := range found[i:] {
					q.listing.giveBack(c.queued)
				}
				return b, nil
			}
			b.txn, b.elements = next, append(b.elements, c)
		}
		if len(b.elements) > 0 && len(found) < len(popped) {
			return b, nil // other consumers are here: while this one reads on, they would take these
		}
	}
	return b, nil
}

// available returns those of the elements that no consumer has taken or claimed. It moves those
// that were delivered too often to the dead letters.
func (q *queue) available(ctx context.Context, elements []queued) (found []candidate, _ error) {
	all, err := q.read(ctx, elements)
	if err != nil {
		return nil, err
	}
	bytes := 0
	for _, r := range all {
		err := r.err
		bytes += len(r.node.Data)
		if err == nil && q.exhausted(r.node.Stat.Version) {
			err = znode.GivenUp(ctx, q.Session, "bury "+r.Name, q.bury(ctx, r.queued, r.node, ""))
			if err == nil {
				err = errNotAvailable
			}
		}
		switch {
		case err == nil:
			found = append(found, r.candidate)
		case errors.Is(err, errBusy):
			q.listing.isBusy(r.queued)
		case !errors.Is(err, errNotAvailable):
			return nil, err
		}
	}
	if len(found) > 0 {
		q.listing.size.Store(int64(bytes/len(found)) + 1)
	}
	return found, nil
}

func (q *queue) exhausted(deliveries int32) bool {
	return q.cfg.MaxDeliveries > 0 && int(deliveries) >= q.cfg.MaxDeliveries
}
