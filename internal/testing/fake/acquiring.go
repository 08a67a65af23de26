package fake

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Acquiring is a session whose locks are acquired by Acquire. It receives the lock of Client.
type Acquiring struct {
	recipes.Client
	Acquire func(context.Context, recipes.Lock) (recipes.Hold, error)
}

func (s Acquiring) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	l, err := s.Client.Lock(path, cfg)
	return acquiringLock{l, s}, err
}

type acquiringLock struct {
	recipes.Lock
	session Acquiring
}

func (l acquiringLock) Acquire(ctx context.Context) (recipes.Hold, error) {
	return l.session.Acquire(ctx, l.Lock)
}
