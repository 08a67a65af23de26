package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
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
	q, err := qs.queue(path, cfg, false)
	if err != nil {
		return nil, err
	}
	return fifo{q}, nil
}

// PriorityQueue returns the priority queue at path.
func (qs *Queues) PriorityQueue(path string, cfg recipes.QueueConfig) (recipes.PriorityQueue, error) {
	q, err := qs.queue(path, cfg, true)
	if err != nil {
		return nil, err
	}
	return byPriority{q}, nil
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
	return first(q.PutMany(ctx, data))
}

func (q fifo) PutMany(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error) {
	return q.put(ctx, q.prefix(kazooPriority), data)
}

type byPriority struct{ *queue }

func (q byPriority) Put(ctx context.Context, priority int, data []byte) (recipes.ElementID, error) {
	return first(q.PutMany(ctx, priority, data))
}

func (q byPriority) PutMany(ctx context.Context, priority int, data ...[]byte) ([]recipes.ElementID, error) {
	if err := q.cfg.ValidatePut(priority, len(data)); err != nil {
		return nil, q.Failed(err)
	}
	return q.put(ctx, q.prefix(priority), data)
}

func first(ids []recipes.ElementID, err error) (recipes.ElementID, error) {
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// commit commits a transaction of the queue, with a receipt.
func (q *queue) commit(ctx context.Context, t session.Txn) (session.Outcome, error) {
	receipts := q.Child(receiptsName)
	if !q.claims() {
		receipts = q.Path() + "-" + receiptsName // kazoo's consumers would take a child for an element
	}
	return q.Session.CommitWithReceipt(ctx, receipts, q.provide, t)
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
	// Another listing, so that Peek takes no element from the consumers' listing.
	l := q.newListing()
	for {
		if err := l.fill(ctx); err != nil {
			return recipes.Element{}, q.Failed(err)
		}
		if len(l.elements) == 0 {
			return recipes.Element{}, q.Failed(recipes.ErrEmpty)
		}
		for _, e := range l.elements {
			c, err := q.candidate(ctx, e)
			if err == nil {
				return c.element(), nil
			}
			if !errors.Is(err, errNotAvailable) {
				return recipes.Element{}, q.Failed(err)
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
