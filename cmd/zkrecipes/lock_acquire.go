package main

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// sharing: PATH is a shared lock. A priority lock has readers and writers too.
func (v *lockVerb) sharing() bool { return (v.shared || v.exclusive) && !v.priority.given }

func (v *lockVerb) semaphoreConfig() recipes.SemaphoreConfig {
	return recipes.SemaphoreConfig{Permits: int(v.permits), Dialect: recipes.Dialect(v.dialect), Data: []byte(v.data)}
}

func (v *lockVerb) sharedConfig() recipes.SharedLockConfig {
	return recipes.SharedLockConfig{Dialect: recipes.Dialect(v.dialect), Data: []byte(v.data), Revocable: v.revocable, Grace: v.forceAfter}
}

func (v *lockVerb) priorityConfig() recipes.PriorityLockConfig {
	return recipes.PriorityLockConfig{
		Priority: v.priority.number, Ask: v.ask, Data: []byte(v.data), Revocable: v.revocable, Grace: v.forceAfter,
	}
}

func (v *lockVerb) acquire(ctx context.Context, s recipes.Session) (grant, error) {
	switch {
	case v.priority.given:
		return v.acquirePriority(ctx, s)
	case v.sharing():
		return v.acquireShared(ctx, s)
	case v.permits.given():
		l, err := s.Semaphore(v.path, v.semaphoreConfig())
		if err != nil {
			return grant{}, err
		}
		return held(choose(v.try, l.TryAcquire, l.Acquire)(ctx))
	}
	l, err := s.Lock(v.path, recipes.LockConfig{Dialect: recipes.Dialect(v.dialect), Data: []byte(v.data)})
	if err != nil {
		return grant{}, err
	}
	return held(choose(v.try, l.TryAcquire, l.Acquire)(ctx))
}

func held(h recipes.Hold, err error) (grant, error) {
	if err != nil {
		return grant{}, err
	}
	return grant{Grant: h, giveBack: h.Release}, nil
}

func (v *lockVerb) acquireShared(ctx context.Context, s recipes.Session) (grant, error) {
	l, err := s.SharedLock(v.path, v.sharedConfig())
	if err != nil {
		return grant{}, err
	}
	if v.exclusive {
		return v.revocably(choose(v.try, l.TryWrite, l.AcquireWrite)(ctx))
	}
	return v.revocably(choose(v.try, l.TryRead, l.AcquireRead)(ctx))
}

func (v *lockVerb) acquirePriority(ctx context.Context, s recipes.Session) (grant, error) {
	l, err := s.PriorityLock(v.path, v.priorityConfig())
	if err != nil {
		return grant{}, err
	}
	if v.shared {
		return v.revocably(choose(v.try, l.TryRead, l.AcquireRead)(ctx))
	}
	return v.revocably(choose(v.try, l.TryWrite, l.AcquireWrite)(ctx))
}

// revocableHold is a hold that others may ask for.
type revocableHold interface {
	recipes.Hold
	Revoked() <-chan struct{}
}

func (v *lockVerb) revocably(h revocableHold, err error) (grant, error) {
	g, err := held(h, err)
	if err == nil && v.revocable {
		g.asked = h.Revoked()
	}
	return g, err
}

func choose[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}
