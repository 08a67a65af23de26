package link

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// The place of a contender arrives with each part of the answer. Only the first one calls the
// application, and the others do not wait for that call, which may take long.
func TestALaterPlaceWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		w := &pendingCall{joined: func(recipes.Place) { calls++; time.Sleep(time.Minute) }}
		go w.notify(recipes.Place{})
		synctest.Wait()
		begun := time.Now()
		w.notify(recipes.Place{})
		if took := time.Since(begun); took > 0 || calls != 1 {
			t.Errorf("it waited %v; %d calls", took, calls)
		}
		time.Sleep(time.Minute)
	})
}
