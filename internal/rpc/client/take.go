package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func (q *queue) Take(ctx context.Context) (recipes.Element, error) {
	return firstOf(q.TakeMany(ctx, 1))
}

// TakeMany makes one call, whose answer has the only copy of the elements. So if the plugin ends
// before it answers, the next one looks for the receipt of their deletion. The call is made again
// only if nothing was deleted.
func (q *queue) TakeMany(ctx context.Context, most int) ([]recipes.Element, error) {
	if err := q.cfg.ValidateBatch(most); err != nil {
		return nil, fmt.Errorf("%s: %w", q, err)
	}
	request := &pb.TakeElementRequest{
		Session: q.s.Handle(), RequestId: q.s.RequestID(), Path: q.path, Dialect: q.dialect, Queue: q.message(),
		Max: int32(most), Receipt: q.s.Resumable(), Received: q.received.all(),
	}
	var t taking
	a, err := link.WriteOrFind(ctx, q.s, q.what, request.RequestId, t.take, t.search, request)
	switch {
	case err == nil && a.GetElement() == nil:
		return nil, fmt.Errorf("%s: %w: the plugin's answer has no element", q, recipes.ErrInternal)
	case err == nil:
		q.received.answered(request)
		return append([]recipes.Element{wire.Element(a.GetElement())}, wire.Each(a.GetOthers(), wire.Element)...), nil
	case t.deleting != "" && errors.Is(err, recipes.ErrUnknownOutcome):
		return nil, fmt.Errorf("%s may have been taken, and would be lost: %w", t.deleting, err)
	}
	return nil, err
}

// taking is a call of TakeMany.
type taking struct {
	deleting string // the elements that the plugin is about to delete, or has deleted; empty once it answers
}

func (t *taking) take(ctx context.Context, request *pb.TakeElementRequest, options ...grpc.CallOption) (*pb.TakeElementResponse, error) {
	t.deleting = ""
	a, err := queueService.TakeElement(carry.WithEarly(ctx, t.begins), request, options...)
	if _, answered := wire.Error(err); answered { // an error of the recipe names the elements itself
		t.deleting = ""
	}
	return a, err
}

// begins reads an early part of the answer.
func (t *taking) begins(part []byte) {
	var a pb.TakeElementResponse
	if proto.Unmarshal(part, &a) == nil {
		t.deleting = a.GetDeleting()
	}
}

// search asks the next plugin what the call has taken.
func (t *taking) search(ctx context.Context, request *pb.TakeElementRequest, options ...grpc.CallOption) (*pb.TakeElementResponse, error) {
	request = proto.CloneOf(request)
	request.Resumed = true
	return queueService.TakeElement(ctx, request, options...)
}

// received are the calls with a receipt whose answers this host has read, although the plugin may
// not know that yet. Their receipts keep the elements until the plugin knows.
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
