package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// claimRoom is the room for everything but the element in the packet that claims it. An
// element that could be put but not claimed would block the queue.
const claimRoom = 3 << 10

func (q *queue) put(ctx context.Context, prefix string, data [][]byte) ([]recipes.ElementID, error) {
	if len(data) == 0 {
		return nil, nil
	}
	if err := q.cfg.ValidatePut(0, len(data)); err != nil {
		return nil, q.Failed(err)
	}
	for _, d := range data {
		if most := q.Session.MaxPacket() - claimRoom; len(d) > most {
			return nil, q.Failed(fmt.Errorf("%w: an element of %d bytes; at most %d fit into a packet of SessionConfig.MaxPacket, %d bytes",
				recipes.ErrTooLarge, len(d), most, q.Session.MaxPacket()))
		}
	}
	if err := q.checkForeign(ctx); err != nil {
		return nil, q.Failed(err)
	}
	outcome, err := q.commitPut(ctx, prefix, data)
	if err != nil {
		return nil, q.Failed(err)
	}
	return q.names(ctx, outcome, prefix, len(data)), nil
}

func (q *queue) commitPut(ctx context.Context, prefix string, data [][]byte) (session.Outcome, error) {
	for {
		var t session.Txn
		if q.cfg.Capacity > 0 {
			version, err := q.room(ctx, len(data))
			if err != nil {
				return session.Outcome{}, err
			}
			t.Set(q.Child(boundName), nil, version)
		}
		for _, d := range data {
			t.CreateSequential(q.Child(prefix), d, q.cfg.Ephemeral)
		}
		outcome, err := q.commit(ctx, t)
		if q.cfg.Capacity > 0 && znode.RefusedOp(err) == 0 && znode.GoneOrChanged(err) {
			continue // another client has put since the elements were counted
		}
		if !q.claims() && znode.RefusedOp(err) >= 0 && errors.Is(err, recipes.ErrNoNode) {
			// The path is gone, but the receipts beside it are not: Curator creates the path
			// as a container.
			if err := q.Session.Provide(ctx, q.Path()); err != nil {
				return session.Outcome{}, err
			}
			continue
		}
		if errors.Is(err, recipes.ErrNodeExists) {
			err = fmt.Errorf("the queue has used all sequence numbers (ZooKeeper counts to %d below one znode): empty it and delete its znode, or use another path: %w", math.MaxInt32, err)
		}
		return outcome, err
	}
}

// room waits until the queue has room for n elements, and returns the version that bound
// had then. The version is read before the elements are counted. A put in between changes
// the version, and a take only makes more room.
func (q *queue) room(ctx context.Context, n int) (version int32, err error) {
	list := func(ctx context.Context, path string) ([]string, *session.Watch, error) {
		names, err := q.Session.Children(ctx, path) // most puts find room, and need no watch
		return names, nil, err
	}
	err = znode.Await(ctx, q.Session, "waiting for room", func() ([]<-chan struct{}, error) {
		bound, err := q.Session.Stat(ctx, q.Child(boundName))
		if errors.Is(err, recipes.ErrNoNode) {
			return nil, cmp.Or(q.provide(ctx, q.Child(boundName)), znode.ErrReadAgain)
		}
		if err != nil {
			return nil, err
		}
		names, changed, err := list(ctx, q.Path())
		switch {
		case err != nil:
			return nil, znode.Listed(err) // another client may have deleted the queue
		case len(q.parse(names))+n <= q.cfg.Capacity:
			version = bound.Version
			return nil, nil
		case changed == nil:
			list = q.Session.ChildrenW
			return nil, znode.ErrReadAgain
		}
		return znode.Events(changed), nil
	})
	return version, err
}

// names returns the names of n elements that were put. After a lost reply, it searches for
// the elements that the transaction created. It begins with the newest, because few others
// have been put since.
func (q *queue) names(ctx context.Context, outcome session.Outcome, prefix string, n int) []recipes.ElementID {
	ids := make([]recipes.ElementID, n)
	if len(outcome.Created) == n {
		for i, path := range outcome.Created {
			ids[i] = recipes.ElementID(path[len(q.Child(prefix))-len(prefix):])
		}
		return ids
	}
	names, err := q.Session.Children(ctx, q.Path())
	if err != nil || outcome.Zxid == 0 {
		return ids
	}
	present := line.Parse(names, prefix)
	line.Sort(present)
	var found []recipes.ElementID
	for _, e := range slices.Backward(present) {
		stat, err := q.Session.Stat(ctx, q.Child(e.Name))
		if errors.Is(err, recipes.ErrNoNode) {
			continue
		}
		if err != nil || stat.Czxid < outcome.Zxid {
			break
		}
		if stat.Czxid == outcome.Zxid {
			found = append(found, recipes.ElementID(e.Name))
		}
	}
	if len(found) != n {
		return ids // some were taken, and it is unknown which
	}
	slices.Reverse(found)
	return found
}
