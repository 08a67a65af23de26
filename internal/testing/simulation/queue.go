package simulation

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// stock records the elements that were put into a queue, and those that were consumed.
type stock struct {
	world *World
	open  func(recipes.Client) (anyQueue, error)

	mu       sync.Mutex
	made     int
	put      map[string]bool   // false: may have been put
	consumed map[string]string // client that is known to have taken or acknowledged the element
	doubtful map[string]bool   // may have been acknowledged
	lost     int               // takes that may have taken an element
}

// anyQueue is a queue, or a priority queue that chooses the priorities.
type anyQueue interface {
	recipes.Consumer
	Put(context.Context, []byte) (recipes.ElementID, error)
}

func queues(w *World) game {
	q := newStock(w)
	return game{q.turn, q.check}
}

// prioritized derives the priority of an element from its data.
type prioritized struct{ recipes.PriorityQueue }

func (p prioritized) Put(ctx context.Context, data []byte) (recipes.ElementID, error) {
	priority := crc32.ChecksumIEEE(data) % (recipes.LowestPriority + 1)
	return p.PriorityQueue.Put(ctx, int(priority), data)
}

func priorityQueues(w *World) game {
	q := newStock(w)
	q.open = func(s recipes.Client) (anyQueue, error) {
		q, err := s.PriorityQueue("/queue", recipes.QueueConfig{})
		return prioritized{q}, err
	}
	return game{q.turn, q.check}
}

// newStock is the stock of a queue without priorities.
func newStock(w *World) *stock {
	return &stock{
		world:    w,
		open:     func(s recipes.Client) (anyQueue, error) { return s.Queue("/queue", recipes.QueueConfig{}) },
		put:      make(map[string]bool),
		consumed: make(map[string]string),
		doubtful: make(map[string]bool),
	}
}

// turn puts elements and then consumes as many at most, which may be those of other clients.
func (q *stock) turn(ctx context.Context, c *client, s recipes.Client) error {
	queue, err := q.open(s)
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	most := 1
	if c.chance.chance(30) {
		most += c.chance.below(4)
	}
	for range most {
		if err := q.add(wait, c, queue); err != nil {
			return err
		}
	}
	if c.chance.chance(30) {
		elements, err := queue.TakeMany(wait, most)
		q.taken(c, most, elements, err)
		return err
	}
	all, err := queue.ReceiveMany(wait, most)
	if err != nil {
		return err
	}
	return q.deliver(ctx, c, s, queue, all)
}

// element returns the data of a new element, and records that it may be put.
func (q *stock) element(c *client) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.made++
	data := fmt.Sprintf("element %d of %s", q.made, c.name)
	q.put[data] = false
	return data
}

func (q *stock) add(ctx context.Context, c *client, queue anyQueue) error {
	data := q.element(c)
	id, err := queue.Put(ctx, []byte(data))
	c.note("put %q as %s: %v", data, id, err)
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err == nil:
		q.put[data] = true
	case !errors.Is(err, recipes.ErrUnknownOutcome) && !c.isDead():
		delete(q.put, data)
		if other := q.consumed[data]; other != "" {
			q.world.fail(c.name, "has not put %q, and %s has consumed it", data, other)
		}
	}
	return err
}

// taken records the result of a take of most elements.
func (q *stock) taken(c *client, most int, elements []recipes.Element, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.note("took %d of %d: %v", len(elements), most, err)
	if c.isDead() || errors.Is(err, recipes.ErrUnknownOutcome) {
		q.lost += most
		return
	}
	for _, e := range elements {
		c.note("took %s", e.ID)
		q.consume(c.name, string(e.Data))
	}
}

// consume records that an element was consumed, and checks that this happens once.
func (q *stock) consume(who, data string) {
	if _, known := q.put[data]; !known {
		q.world.fail(who, "consumed %q, which no client has put", data)
	}
	if other, gone := q.consumed[data]; gone {
		q.world.fail(who, "consumed %q, which %s had already consumed", data, other)
	}
	q.consumed[data] = who
}

// deliver holds the deliveries of a batch, and acknowledges or returns them.
func (q *stock) deliver(ctx context.Context, c *client, s recipes.Client, queue anyQueue, all []recipes.Delivery) error {
	var held []*grant
	for _, d := range all {
		g := &grant{client: c, session: s, path: "/queue/" + string(d.Element().ID), Grant: d}
		q.world.ledger.enter(g, 1)
		held = append(held, g)
	}
	_ = c.step(ctx, c.chance.about(100*time.Millisecond))
	for _, g := range held {
		q.world.ledger.leave(g)
	}
	if c.chance.chance(20) {
		var errs []error
		for _, d := range all {
			err := d.Return(ctx)
			c.note("returned %s: %v", d.Element().ID, err)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	err := queue.AckMany(ctx, all...)
	for _, d := range all {
		q.acknowledged(c, d, d.Ack(ctx)) // the result of this one
	}
	return err
}

func (q *stock) acknowledged(c *client, d recipes.Delivery, err error) {
	c.note("acknowledged %s: %v", d.Element().ID, err)
	q.mu.Lock()
	defer q.mu.Unlock()
	if data := string(d.Element().Data); err == nil && !c.isDead() {
		q.consume(c.name, data)
	} else {
		q.doubtful[data] = true
	}
}

// check empties the queue. Each element that was put must be in it, or have been consumed.
func (q *stock) check(ctx context.Context, operator recipes.Client) {
	queue, err := q.open(operator)
	if err != nil {
		q.world.fail("operator", "%v", err)
		return
	}
	n, err := queue.Len(ctx)
	for range n {
		e, takeErr := queue.Take(ctx)
		if err = takeErr; err != nil {
			break
		}
		q.consume("operator", string(e.Data))
	}
	if err != nil {
		q.world.fail("operator", "empties the queue: %v", err)
	}
	missing := 0
	for data, known := range q.put {
		if q.consumed[data] == "" && known && !q.doubtful[data] {
			missing++
		}
	}
	if missing > q.lost {
		q.world.fail("queue", "%d elements are missing, and %d may have been taken", missing, q.lost)
	}
}
