package rwlock

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// modes has the four ways to enter a lock with readers and writers.
type modes[H any] struct {
	enter func(ctx context.Context, mode recipes.Mode, try bool) (H, error)
}

func (m modes[H]) AcquireRead(ctx context.Context) (H, error) {
	return m.enter(ctx, recipes.Reading, false)
}

func (m modes[H]) AcquireWrite(ctx context.Context) (H, error) {
	return m.enter(ctx, recipes.Writing, false)
}

func (m modes[H]) TryRead(ctx context.Context) (H, error) {
	return m.enter(ctx, recipes.Reading, true)
}

func (m modes[H]) TryWrite(ctx context.Context) (H, error) {
	return m.enter(ctx, recipes.Writing, true)
}
