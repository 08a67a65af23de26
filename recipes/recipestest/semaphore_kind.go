package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// semaphoreKind is a semaphore with one permit: it promises what a lock does.
func semaphoreKind(strategy recipes.Strategy) kind {
	return kind{name: "one permit", marker: "lease-", strategy: strategy,
		take: func(s recipes.Client, path string, o options) (line, error) {
			m, err := s.Semaphore(path, recipes.SemaphoreConfig{Permits: 1, Strategy: o.strategy, Data: []byte(o.data), Joined: o.joined})
			return semaphoreLine{m}, err
		}}
}

func semaphoreKinds() []kind {
	var kinds []kind
	for _, s := range recipes.Strategies() {
		kinds = append(kinds, semaphoreKind(s))
	}
	return kinds
}

type semaphoreLine struct{ recipes.Semaphore }

func (l semaphoreLine) Enter(ctx context.Context) (grant, error) {
	h, err := l.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return lockGrant{h}, nil
}
