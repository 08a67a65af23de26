package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// Names of a queue's children. elementPrefix begins the names of elements.
const (
	elementPrefix = "queue-"
	receiptsName  = "receipts"
	claimsName    = "claims"
	deadName      = "dead"
	boundName     = "bound"
)

// Queues are the queues of one session. There is one Queues for each session, because its
// consumers of a path share a listing.
type Queues struct {
	session *session.Session

	mu       sync.Mutex
	listings map[listingKey]*listing
}

// Of returns the queues of a session.
func Of(s *session.Session) *Queues { return &Queues{session: s} }

// queue is the common part of queues and priority queues.
type queue struct {
	znode.Recipe
	cfg      recipes.QueueConfig
	listing  *listing // shared by the session's consumers of the path
	priority bool
}

// Queue returns the queue at path.
func (qs *Queues) Queue(path string, cfg recipes.QueueConfig) (recipes.Queue, error) {
	return session.InDialect(qs.session, path, cfg.Dialect, func() (recipes.Queue, error) {
		q, err := qs.queue(path, cfg, false)
		if err != nil {
			return nil, err
		}
		return fifo{q}, nil
	})
}

// PriorityQueue returns the priority queue at path.
func (qs *Queues) PriorityQueue(path string, cfg recipes.QueueConfig) (recipes.PriorityQueue, error) {
	return session.InDialect(qs.session, path, cfg.Dialect, func() (recipes.PriorityQueue, error) {
		q, err := qs.queue(path, cfg, true)
		if err != nil {
			return nil, err
		}
		return byPriority{q}, nil
	})
}

func (qs *Queues) queue(path string, cfg recipes.QueueConfig, priority bool) (*queue, error) {
	err := cfg.Validate()
	cfg.Dialect = cmp.Or(cfg.Dialect, recipes.ZooKeeper)
	switch {
	case err != nil:
	case priority && cfg.Dialect == recipes.Curator:
		err = fmt.Errorf("%w: Curator's SimpleDistributedQueue has no priorities", recipes.ErrInvalid)
	case cfg.Dialect != recipes.ZooKeeper:
		err = znode.NotRoot(path, "there is no room for receipts beside the root")
	}
	r, err := znode.New(qs.session, "queue", path, err)
	if err != nil {
		return nil, err
	}
	q := &queue{Recipe: r, cfg: cfg, priority: priority}
	q.listing = qs.listingOf(q)
	return q, nil
}

type fifo struct{ *queue }

func (q fifo) Put(ctx context.Context, data []byte) (recipes.ElementID, error) {
	return firstOf(q.PutMany(ctx, data))
}

func (q fifo) PutMany(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error) {
	return q.put(ctx, q.prefix(kazooPriority), data)
}

type byPriority struct{ *queue }

func (q byPriority) Put(ctx context.Context, priority int, data []byte) (recipes.ElementID, error) {
	return firstOf(q.PutMany(ctx, priority, data))
}

func (q byPriority) PutMany(ctx context.Context, priority int, data ...[]byte) ([]recipes.ElementID, error) {
	if err := q.cfg.ValidatePut(priority, len(data)); err != nil {
		return nil, q.Failed(err)
	}
	return q.put(ctx, q.prefix(priority), data)
}

// commit commits a transaction of the queue, with a receipt.
func (q *queue) commit(ctx context.Context, t session.Txn) (session.Outcome, error) {
	return q.Session.CommitWithReceipt(ctx, q.receipts(), q.provide, t)
}

// receipts is the parent of the receipts.
func (q *queue) receipts() string {
	if !q.claims() {
		return q.Path() + "-" + receiptsName // kazoo's consumers would take a child for an element
	}
	return q.Child(receiptsName)
}

// claims reports whether all consumers of the path respect claims.
func (q *queue) claims() bool { return q.cfg.Dialect == recipes.ZooKeeper }

// provide creates a child of the queue that is a parent, and the queue's own znode. Only
// the latter is persistent, not a container: a container would be deleted when the queue is
// empty. The sequence numbers of elements would then start again, but the names of
// elements and claims must be used only once.
func (q *queue) provide(ctx context.Context, child string) error {
	if err := q.Session.Provide(ctx, q.Path()); err != nil {
		return err
	}
	return q.Session.Ensure(ctx, child)
}

func (q *queue) Len(ctx context.Context) (int, error) {
	names, err := q.Session.Children(ctx, q.Path())
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return 0, q.Failed(err)
	}
	return len(q.parse(names)), nil
}

func (q *queue) Peek(ctx context.Context) (recipes.Element, error) {
	// A separate listing, so that Peek takes no element from the consumers' listing.
	l := q.newListing()
	for {
		if err := l.fill(ctx); err != nil {
			return recipes.Element{}, q.Failed(err)
		}
		if len(l.elements) == 0 {
			return recipes.Element{}, q.Failed(recipes.ErrEmpty)
		}
		for _, e := range l.elements {
			found, err := q.read(ctx, []queued{e})
			if err != nil {
				return recipes.Element{}, q.Failed(err)
			}
			if found[0].err == nil {
				return found[0].element(), nil
			}
		}
	}
}

func (q *queue) DeadLetters(ctx context.Context) ([]recipes.Element, error) {
	names, err := q.Session.Children(ctx, q.Child(deadName))
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return nil, q.Failed(err)
	}
	dead := []recipes.Element{}
	for _, e := range q.parse(names) {
		node, err := q.Session.Get(ctx, q.Child(deadName, e.Name))
		if errors.Is(err, recipes.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, q.Failed(err)
		}
		dead = append(dead, candidate{queued: e, node: node}.element())
	}
	return dead, nil
}

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
			return nil, q.Failed(fmt.Errorf("%w: an element of %d bytes; at most %d fit into a packet of SessionConfig.MaxPacket (max_packet), %d bytes; raise it and the servers' jute.maxbuffer, or write less",
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
			// The path was deleted, but not the receipts beside it: Curator creates the path
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
