package zookeeper_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// rwHold is what the histories below need of a hold.
type rwHold interface {
	recipes.Hold
	Mode() recipes.Mode
}

// rwTurn takes a lock with readers and writers, and writes what it has to with
// write while it holds.
type rwTurn func(ctx context.Context, r *rand.Rand, s recipes.Session, write func(rwHold) error) error

// sharedTurn reads, writes, or writes and then reads.
func sharedTurn(ctx context.Context, r *rand.Rand, s recipes.Session, write func(rwHold) error) error {
	l, err := s.SharedLock("/history", recipes.SharedLockConfig{
		Strategy: anyStrategy(r), Revocable: true, Grace: time.Millisecond,
	})
	if err != nil {
		return err
	}
	acquire := l.AcquireWrite
	if r.IntN(2) == 0 {
		acquire = l.AcquireRead
	}
	h, err := acquire(ctx)
	if err != nil {
		return err
	}
	err = write(h)
	if err == nil && h.Mode() == recipes.Writing && r.IntN(2) == 0 {
		if err = h.Downgrade(ctx); err == nil {
			err = write(h)
		}
	}
	if r.IntN(8) == 0 {
		return errors.Join(err, l.RevokeForced(ctx, h.Znode()))
	}
	return errors.Join(err, h.Release(ctx))
}

// priorityTurn reads or writes at some priority, and sometimes hands off.
func priorityTurn(ctx context.Context, r *rand.Rand, s recipes.Session, write func(rwHold) error) error {
	l, err := s.PriorityLock("/history", recipes.PriorityLockConfig{
		Strategy: anyStrategy(r), Priority: r.IntN(3), Ask: r.IntN(2) == 0, Revocable: true, Grace: time.Millisecond,
	})
	if err != nil {
		return err
	}
	acquire := l.AcquireWrite
	if r.IntN(2) == 0 {
		acquire = l.AcquireRead
	}
	h, err := acquire(ctx)
	if err != nil {
		return err
	}
	err = write(h)
	switch r.IntN(4) {
	case 0:
		all, _ := l.Contenders(ctx)
		for _, c := range all {
			if !c.Holds {
				handed := h.HandOff(ctx, c.Znode)
				if handed == nil {
					return err
				}
				if !errors.Is(handed, recipes.ErrNoNode) && !errors.Is(handed, recipes.ErrContended) {
					err = errors.Join(err, handed)
				}
				break
			}
		}
	case 1:
		return errors.Join(err, l.RevokeForced(ctx, h.Znode()))
	}
	return errors.Join(err, h.Release(ctx))
}

// exclusive is a hold of a lock.
type exclusive struct{ recipes.Hold }

func (exclusive) Mode() recipes.Mode { return recipes.Writing }

// exclusiveTurn takes the lock in any way of waiting, and sometimes has no patience.
func exclusiveTurn(ctx context.Context, r *rand.Rand, s recipes.Session, write func(rwHold) error) error {
	l, err := s.Lock("/history", recipes.LockConfig{Strategy: anyStrategy(r)})
	if err != nil {
		return err
	}
	brief, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.IntN(8) == 0 {
		brief, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(3000))*time.Microsecond)
		defer cancel()
	}
	h, err := l.Acquire(brief)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(write(exclusive{h}), h.Release(ctx))
}

// permit is a hold of a semaphore.
type permit struct{ recipes.Hold }

func (permit) Mode() recipes.Mode { return "permit" }

func semaphoreTurn(ctx context.Context, r *rand.Rand, s recipes.Session, write func(rwHold) error) error {
	m, err := s.Semaphore("/history", recipes.SemaphoreConfig{Permits: historyPermits, Strategy: anyStrategy(r)})
	if err != nil {
		return err
	}
	h, err := m.Acquire(ctx)
	if err != nil {
		return err
	}
	return errors.Join(write(permit{h}), h.Release(ctx))
}

func anyStrategy(r *rand.Rand) recipes.Strategy {
	return recipes.Strategies()[r.IntN(len(recipes.Strategies()))]
}
