package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func (q *queue) Take(ctx context.Context) (recipes.Element, error) {
	return firstOf(q.TakeMany(ctx, 1))
}

// TakeMany makes one call, whose answer has the only copy of the elements. So if the plugin ends
// before it answers, the next one looks for the receipt of their deletion. Only if it has deleted
// nothing is the call made again.
func (q *queue) TakeMany(ctx context.Context, most int) ([]recipes.Element, error) {
	if err := q.cfg.ValidateBatch(most); err != nil {
		return nil, fmt.Errorf("%s: %w", q, err)
	}
	t := &taking{queue: q, waiter: &waiter{turns: make(chan turn, 1), always: true}, ask: &pb.TakeElementRequest{
		Session: q.s.handle, RequestId: q.s.requestID(), Path: q.path, Dialect: q.dialect, Queue: q.message(),
		Max: int32(most), Receipt: q.s.resumable,
	}}
	q.s.expect(t.ask.RequestId, t.waiter)
	defer q.s.unexpect(t.ask.RequestId, t.waiter)
	for {
		taken, err := t.make(ctx)
		switch {
		case !t.nothing:
			return taken, err
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%s: %w", q, q.s.interrupted(ctx.Err()))
		}
	}
}

// taking is a call of TakeMany.
type taking struct {
	*queue
	ask    *pb.TakeElementRequest
	waiter *waiter

	deleting string // the elements that the plugin is about to delete, or has deleted
	nothing  bool   // the call has taken nothing in the plugin that has ended
}

func (t *taking) make(ctx context.Context) ([]recipes.Element, error) {
	t.ask.Received, t.nothing, t.deleting = t.s.received.all(), false, ""
	var a *pb.TakeElementResponse
	// A repeated call is a search for the receipt, in the turn that the waiter is offered.
	options := repeated(func(error) bool { return t.nothing })
	options.waiter = t.waiter
	err := t.s.write(ctx, options.abandonable(t.ask.RequestId), func(ctx context.Context) (err error) {
		if t.waiter.resumed != nil {
			a, err = t.search(ctx)
			return err
		}
		a, err = t.s.queues.TakeElement(carry.WithEarly(ctx, t.begins), t.ask)
		return err
	})
	if err == nil && a.GetElement() == nil {
		return nil, fmt.Errorf("%s: %w: the plugin's answer has no element", t.queue, recipes.ErrInternal)
	}
	if err == nil {
		t.s.received.answered(t.ask)
		return append([]recipes.Element{wire.Element(a.GetElement())}, wire.Each(a.GetOthers(), wire.Element)...), nil
	}
	_, answered := wire.Error(err)
	err = t.s.explainWrite(ctx, t.what, err)
	if !answered && t.deleting != "" && errors.Is(err, recipes.ErrUnknownOutcome) {
		err = fmt.Errorf("%s may have been taken, and would be lost: %w", t.deleting, err)
	}
	return nil, err
}

// begins reads an early part of the answer.
func (t *taking) begins(part []byte) {
	var a pb.TakeElementResponse
	if proto.Unmarshal(part, &a) == nil {
		t.deleting = a.GetDeleting()
	}
}

// search asks the next plugin what the call has taken. It repeats that until it knows.
func (t *taking) search(ctx context.Context) (a *pb.TakeElementResponse, err error) {
	ask := proto.CloneOf(t.ask)
	ask.Resumed = true
	refused, answered := t.s.retry(ctx, func(ctx context.Context) error {
		a, err = t.s.queues.TakeElement(ctx, ask)
		return err
	})
	t.nothing = answered && errors.Is(refused, recipes.ErrNotHeld)
	return a, err
}

// received are the calls with a receipt that were answered, and that the plugin does not know to be
// answered. Their receipts keep the elements until then.
type received struct {
	mu  sync.Mutex
	ids []string
}

func (r *received) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ids...)
}

// answered records that ask was answered. So the plugin has read the calls that ask names.
func (r *received) answered(ask *pb.TakeElementRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := make(map[string]bool, len(ask.Received))
	for _, id := range ask.Received {
		known[id] = true
	}
	rest := r.ids[:0]
	for _, id := range r.ids {
		if !known[id] {
			rest = append(rest, id)
		}
	}
	if r.ids = rest; ask.Receipt {
		r.ids = append(r.ids, ask.RequestId)
	}
}
