package zookeeper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A waiter asks a holder to give way that has a lower priority, and no other.
func TestWhoIsAskedToGiveWay(t *testing.T) {
	for priority, want := range map[int]bool{4: true, 5: false, 6: false} {
		onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Session) {
			holding := must[recipes.PriorityLock](t)(s.PriorityLock("/ask", recipes.PriorityLockConfig{Priority: 5, Revocable: true, Grace: time.Hour}))
			h := must[recipes.PriorityHold](t)(holding.AcquireWrite(ctx))
			asking := must[recipes.PriorityLock](t)(openVirtual(t, srv).PriorityLock("/ask", recipes.PriorityLockConfig{Priority: priority, Ask: true}))
			granted := make(chan recipes.PriorityHold, 1)
			go func() {
				if h, err := asking.AcquireWrite(ctx); err == nil {
					granted <- h
				}
			}()
			revoked := h.Revoked()
			synctest.Wait()
			asked := false
			select {
			case <-revoked:
				asked = true
			default:
			}
			if asked != want {
				t.Errorf("priority %d asks 5: %v", priority, asked)
			}
			if err := h.Release(ctx); err != nil {
				t.Fatal(err)
			}
			<-granted
		})
	}
}
