package zookeeper_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// shown is a list of contenders without what differs from run to run.
func shown(all []recipes.Contender, err error) (any, error) {
	var out []string
	for _, c := range all {
		out = append(out, fmt.Sprint(c.Kind, c.Dialect, c.Sequence, c.Token, c.Holds, c.Mode, c.Successor, string(c.Data)))
	}
	return out, err
}

func questionsAboutLines() (all []question) {
	// Two stand in line, the first holds.
	standing := func(name string, enter func(s recipes.Session, ctx context.Context, i int) error, ask func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error)) {
		all = append(all, question{name, func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			for i := range 3 {
				go func() {
					if err := enter(other, ctx, i); err != nil && ctx.Err() == nil && other.Err() == nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
			}
			return func(ctx context.Context) (any, error) { return shown(ask(asks, ctx)) }
		}})
	}
	for _, d := range []recipes.Dialect{recipes.ZooKeeper, recipes.Curator, recipes.Kazoo} {
		lock := func(s recipes.Session) recipes.Lock {
			l, _ := s.Lock("/l", recipes.LockConfig{Dialect: d, Data: []byte("x")})
			return l
		}
		standing(fmt.Sprint("lock, ", d), func(s recipes.Session, ctx context.Context, _ int) error {
			_, err := lock(s).Acquire(ctx)
			return err
		}, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
			return lock(s).Contenders(ctx)
		})
		shared := func(s recipes.Session) recipes.SharedLock {
			l, _ := s.SharedLock("/l", recipes.SharedLockConfig{Dialect: d})
			return l
		}
		standing(fmt.Sprint("shared lock, ", d), func(s recipes.Session, ctx context.Context, i int) (err error) {
			if i == 1 {
				_, err = shared(s).AcquireWrite(ctx)
			} else {
				_, err = shared(s).AcquireRead(ctx)
			}
			return err
		}, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
			return shared(s).Contenders(ctx)
		})
		semaphore := func(s recipes.Session) recipes.Semaphore {
			l, _ := s.Semaphore("/l", recipes.SemaphoreConfig{Dialect: d, Permits: 2})
			return l
		}
		standing(fmt.Sprint("semaphore, ", d), func(s recipes.Session, ctx context.Context, _ int) error {
			_, err := semaphore(s).Acquire(ctx)
			return err
		}, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
			return semaphore(s).Contenders(ctx)
		})
		election := func(s recipes.Session) recipes.Election {
			e, _ := s.Election("/l", recipes.ElectionConfig{Dialect: d})
			return e
		}
		campaign := func(s recipes.Session, ctx context.Context, _ int) error {
			leads, err := election(s).Campaign(ctx, []byte("x"))
			if err == nil && d == recipes.ZooKeeper { // the others know no acknowledgement
				err = leads.Acknowledge(ctx, []byte("y"))
			}
			return err
		}
		leader := func(l recipes.Leader, err error) ([]recipes.Contender, error) {
			l.Data = append(l.Data, fmt.Sprint(l.Acknowledged, string(l.Acknowledgement))...)
			return []recipes.Contender{l.Contender}, err
		}
		standing(fmt.Sprint("election, ", d), campaign, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
			return election(s).Candidates(ctx)
		})
		standing(fmt.Sprint("leader, ", d), campaign, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
			return leader(election(s).Leader(ctx))
		})
		if d == recipes.ZooKeeper {
			standing("acknowledged leader", campaign, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
				return leader(election(s).Acknowledged(ctx))
			})
		}
	}
	priority := func(s recipes.Session, at int) recipes.PriorityLock {
		l, _ := s.PriorityLock("/l", recipes.PriorityLockConfig{Priority: at})
		return l
	}
	standing("priority lock", func(s recipes.Session, ctx context.Context, i int) error {
		_, err := priority(s, 5-i).AcquireWrite(ctx)
		return err
	}, func(s recipes.Session, ctx context.Context) ([]recipes.Contender, error) {
		return priority(s, 0).Contenders(ctx)
	})
	return all
}
