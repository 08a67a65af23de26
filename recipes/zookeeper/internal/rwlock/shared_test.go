package rwlock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Readers that wait behind a writer hold nothing, however many there are.
func TestReadersBehindAWriterDoNotHold(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		l := must.Get(s.SharedLock("/shared", recipes.SharedLockConfig{}))(t)
		reader := must.Get(l.AcquireRead(ctx))(t)
		got := make(chan recipes.SharedHold, 3)
		enter := func(acquire func(context.Context) (recipes.SharedHold, error)) {
			go func() { got <- must.Get(acquire(ctx))(t) }()
			synctest.Wait()
		}
		enter(l.AcquireWrite)
		enter(l.AcquireRead)
		enter(l.AcquireRead)
		holds := 0
		for _, c := range must.Get(l.Contenders(ctx))(t) {
			if c.Holds {
				holds++
				if c.Znode != reader.Znode() {
					t.Errorf("%s holds", c.Znode)
				}
			}
		}
		if holds != 1 {
			t.Errorf("%d hold; want the first reader alone", holds)
		}
		for hold := reader; ; hold = <-got {
			must.Do(t, hold.Release(ctx))
			synctest.Wait()
			if line := must.Get(l.Contenders(ctx))(t); len(line) == 0 {
				return
			}
		}
	})
}
