package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func awaitedLines() (all []awaited) {
	for _, strategy := range recipes.Strategies() {
		lock := func(s recipes.Session, t *testing.T) recipes.Lock {
			return must[recipes.Lock](t)(s.Lock("/l", recipes.LockConfig{Strategy: strategy}))
		}
		acquire := func(s *awaiting) func(context.Context) error {
			l := lock(s.waits, s.T)
			return func(ctx context.Context) error { _, err := l.Acquire(ctx); return err }
		}
		all = append(all, awaited{fmt.Sprintf("the release of a lock, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
			h := must[recipes.Hold](s.T)(lock(s.other, s.T).Acquire(s.ctx))
			return acquire(s), h.Release
		}}, awaited{fmt.Sprintf("the loss of a holder's znode, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
			h := must[recipes.Hold](s.T)(lock(s.other, s.T).Acquire(s.ctx))
			return acquire(s), func(context.Context) error { return s.remove(h.Znode()) }
		}}, awaited{fmt.Sprintf("the end of a hold, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
			h := must[recipes.Hold](s.T)(lock(s.waits, s.T).Acquire(s.ctx))
			return ended(h), func(context.Context) error { return s.remove(h.Znode()) }
		}})
		if strategy == recipes.Handoff {
			continue // what follows does as with predecessor then
		}
		all = append(all, awaited{fmt.Sprintf("a permit, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
			at := func(s recipes.Session, t *testing.T) recipes.Semaphore {
				return must[recipes.Semaphore](t)(s.Semaphore("/l", recipes.SemaphoreConfig{Permits: 2, Strategy: strategy}))
			}
			first := must[recipes.Hold](s.T)(at(s.other, s.T).Acquire(s.ctx))
			must[recipes.Hold](s.T)(at(s.other, s.T).Acquire(s.ctx))
			mine := at(s.waits, s.T)
			return func(ctx context.Context) error { _, err := mine.Acquire(ctx); return err }, first.Release
		}})
		for _, read := range []bool{false, true} {
			shared := func(s recipes.Session, t *testing.T) recipes.SharedLock {
				return must[recipes.SharedLock](t)(s.SharedLock("/l", recipes.SharedLockConfig{Strategy: strategy, Revocable: true}))
			}
			acquire := func(s *awaiting) func(context.Context) error {
				l := shared(s.waits, s.T)
				return func(ctx context.Context) (err error) {
					if read {
						_, err = l.AcquireRead(ctx)
					} else {
						_, err = l.AcquireWrite(ctx)
					}
					return err
				}
			}
			all = append(all, awaited{fmt.Sprintf("the release of a writer, %s, read %v", strategy, read), func(s *awaiting) (wait, happen func(context.Context) error) {
				return acquire(s), must[recipes.SharedHold](s.T)(shared(s.other, s.T).AcquireWrite(s.ctx)).Release
			}})
			if read {
				all = append(all, awaited{fmt.Sprintf("a downgrade, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
					return acquire(s), must[recipes.SharedHold](s.T)(shared(s.other, s.T).AcquireWrite(s.ctx)).Downgrade
				}}, awaited{fmt.Sprintf("a request to give way, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
					h := must[recipes.SharedHold](s.T)(shared(s.waits, s.T).AcquireWrite(s.ctx))
					theirs := shared(s.other, s.T)
					return func(ctx context.Context) error {
						select {
						case <-h.Revoked():
							return nil
						case <-ctx.Done():
							return ctx.Err()
						}
					}, func(ctx context.Context) error { return theirs.Revoke(ctx, h.Znode()) }
				}})
			}
			priority := func(s recipes.Session, t *testing.T, at int) recipes.PriorityLock {
				return must[recipes.PriorityLock](t)(s.PriorityLock("/l", recipes.PriorityLockConfig{Strategy: strategy, Priority: at}))
			}
			claim := func(ctx context.Context, l recipes.PriorityLock) (recipes.PriorityHold, error) {
				if read {
					return l.AcquireRead(ctx)
				}
				return l.AcquireWrite(ctx)
			}
			all = append(all, awaited{fmt.Sprintf("the release of a priority lock, %s, read %v", strategy, read), func(s *awaiting) (wait, happen func(context.Context) error) {
				mine := priority(s.waits, s.T, 5)
				return func(ctx context.Context) error { _, err := claim(ctx, mine); return err },
					must[recipes.PriorityHold](s.T)(priority(s.other, s.T, 5).AcquireWrite(s.ctx)).Release
			}}, awaited{fmt.Sprintf("the release of a reader, %s, read %v", strategy, read), func(s *awaiting) (wait, happen func(context.Context) error) {
				mine := priority(s.waits, s.T, 5)
				return func(ctx context.Context) error { _, err := claim(ctx, mine); return err },
					must[recipes.PriorityHold](s.T)(priority(s.other, s.T, 5).AcquireRead(s.ctx)).Release
			}})
		}
	}
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		all = append(all, awaited{fmt.Sprintf("a lease, %s", d), func(s *awaiting) (wait, happen func(context.Context) error) {
			at := func(session recipes.Session) recipes.Semaphore {
				return must[recipes.Semaphore](s.T)(session.Semaphore("/l", recipes.SemaphoreConfig{Permits: 1, Dialect: d}))
			}
			h := must[recipes.Hold](s.T)(at(s.other).Acquire(s.ctx))
			mine := at(s.waits)
			return func(ctx context.Context) error { _, err := mine.Acquire(ctx); return err }, h.Release
		}})
	}
	return all
}

// ended waits until a grant stands no longer.
func ended(g recipes.Grant) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-g.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := g.Err(); !errors.Is(err, recipes.ErrRemoved) {
			return fmt.Errorf("it has ended for another reason: %w", err)
		}
		return nil
	}
}
