package bench_test

import (
	"context"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// repeating opens sessions whose queues give every element twice.
func repeating(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	s, err := zookeeper.Open(ctx, cfg)
	return repeatingSession{s}, err
}

type repeatingSession struct{ recipes.Client }

func (s repeatingSession) Queue(path string, cfg recipes.QueueConfig) (recipes.Queue, error) {
	q, err := s.Client.Queue(path, cfg)
	return &repeatingQueue{Queue: q}, err
}

type repeatingQueue struct {
	recipes.Queue
	last atomic.Pointer[recipes.Element]
}

func (q *repeatingQueue) Take(ctx context.Context) (recipes.Element, error) {
	if last := q.last.Swap(nil); last != nil {
		return *last, nil
	}
	e, err := q.Queue.Take(ctx)
	q.last.Store(&e)
	return e, err
}
