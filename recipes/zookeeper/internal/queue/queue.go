package queue

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Names of what a queue keeps below its path beside the elements.
const (
	elementPrefix = "queue-"
	receiptsName  = "receipts"
	claimsName    = "claims"
	deadName      = "dead"
	boundName     = "bound"
)

// Queues are the queues of one session. Its consumers of one path share a listing,
// so there is one Queues for each session.
type Queues struct {
	session *session.Session

	mu       sync.Mutex
	listings map[listingKey]*listing
}

// Of returns the queues of a session.
func Of(s *session.Session) *Queues { return &Queues{session: s} }

// queue is what queues and priority queues have in common.
type queue struct {
	session  *session.Session
	path     string
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
	err := recipes.ValidatePath(path)
	if err == nil {
		err = cfg.Validate()
	}
	if cfg.Dialect == "" {
		cfg.Dialect = recipes.DefaultDialect
	}
	if err == nil && priority && cfg.Dialect == recipes.Curator {
		err = fmt.Errorf("%w: Curator's SimpleDistributedQueue has no priorities", recipes.ErrInvalid)
	}
	if err == nil && path == "/" && cfg.Dialect != recipes.DefaultDialect {
		err = fmt.Errorf("%w: there is no room for receipts beside the root", recipes.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("queue %s: %w", path, err)
	}
	q := &queue{session: qs.session, path: path, cfg: cfg, priority: priority}
	q.listing = qs.listingOf(q)
	return q, nil
}

// fifo is the plain form.
type fifo struct{ *queue }

func (q fifo) Put(ctx context.Context, data []byte) (recipes.ElementID, error) {
	return first(q.PutMany(ctx, data))
}

func (q fifo) PutMany(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error) {
	return q.put(ctx, q.prefix(kazooPriority), data)
}

// byPriority is the form with priorities.
type byPriority struct{ *queue }

func (q byPriority) Put(ctx context.Context, priority int, data []byte) (recipes.ElementID, error) {
	return first(q.PutMany(ctx, priority, data))
}

func (q byPriority) PutMany(ctx context.Context, priority int, data ...[]byte) ([]recipes.ElementID, error) {
	if err := q.cfg.ValidatePut(priority, len(data)); err != nil {
		return nil, q.failed(err)
	}
	return q.put(ctx, q.prefix(priority), data)
}

func first(ids []recipes.ElementID, err error) (recipes.ElementID, error) {
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

func (q *queue) Path() string { return q.path }

func (q *queue) child(elements ...string) string {
	return gopath.Join(append([]string{q.path}, elements...)...)
}

func (q *queue) failed(err error) error { return fmt.Errorf("queue %s: %w", q.path, err) }

// commit commits a transaction of the queue, with a receipt.
func (q *queue) commit(ctx context.Context, t session.Txn) (session.Outcome, error) {
	receipts := q.child(receiptsName)
	if !q.claims() {
		receipts = q.path + "-" + receiptsName // kazoo's consumers take every child
	}
	return q.session.CommitWithReceipt(ctx, receipts, q.provide, t)
}

// claims reports whether all who take elements see claims.
func (q *queue) claims() bool { return q.cfg.Dialect == recipes.DefaultDialect }

// provide creates a child of the queue as a parent of others. The queue's own znode is
// persistent. Other parents are containers, but a container would be deleted when the
// queue is empty. Then the names of elements and claims, which must be used only once,
// would start again.
func (q *queue) provide(ctx context.Context, child string) error {
	if err := q.session.Provide(ctx, q.path); err != nil {
		return err
	}
	return q.session.Ensure(ctx, child)
}

func (q *queue) Len(ctx context.Context) (int, error) {
	names, err := q.session.Children(ctx, q.path)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return 0, q.failed(err)
	}
	return len(q.parse(names)), nil
}

func (q *queue) Peek(ctx context.Context) (recipes.Element, error) {
	// It uses another listing, so that it takes no element from the consumers.
	l := q.newListing()
	for {
		if err := l.fill(ctx); err != nil {
			return recipes.Element{}, q.failed(err)
		}
		if len(l.elements) == 0 {
			return recipes.Element{}, q.failed(recipes.ErrEmpty)
		}
		for _, e := range l.elements {
			c, err := q.candidate(ctx, e)
			if err == nil {
				return c.element(), nil
			}
			if !errors.Is(err, errNotAvailable) {
				return recipes.Element{}, q.failed(err)
			}
		}
	}
}

func (q *queue) DeadLetters(ctx context.Context) ([]recipes.Element, error) {
	names, err := q.session.Children(ctx, q.child(deadName))
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return nil, q.failed(err)
	}
	dead := []recipes.Element{}
	for _, e := range q.parse(names) {
		node, err := q.session.Get(ctx, q.child(deadName, e.Name))
		if errors.Is(err, recipes.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, q.failed(err)
		}
		dead = append(dead, candidate{queued: e, node: node}.element())
	}
	return dead, nil
}
