package session_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Sessions that hold something wake the process and the server at common instants, whenever the
// holds began, ten times per timeout, and send nothing else. So an idle hold is cheap.
func TestIdleHoldsConfirmTogether(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, first *session.Session) {
		const sessions = 5
		held := []*session.Session{first}
		for range sessions - 1 {
			time.Sleep(first.Timeout() * 37 / 1000)
			s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}}, dialPipe(srv)))(t)
			defer closeNow(s)
			held = append(held, s)
		}
		for _, s := range held {
			time.Sleep(s.Timeout() * 13 / 1000)
			beginHold(t, s)
			defer s.EndHold()
		}
		time.Sleep(first.Timeout())
		var mu sync.Mutex
		others := 0
		at := map[time.Time]int{}
		srv.SetFault(func(r zkserver.Request) (none zkserver.Fault) {
			mu.Lock()
			defer mu.Unlock()
			if r.Op == zkserver.OpSync {
				at[time.Now().Round(time.Millisecond)]++
			} else {
				others++
			}
			return none
		})
		pings := srv.Counters().Pings
		time.Sleep(2 * first.Timeout())
		synctest.Wait()
		if n := srv.Counters().Pings - pings; n != 0 {
			t.Errorf("%d pings beside the syncs", n)
		}
		mu.Lock()
		defer mu.Unlock()
		syncs := 0
		for _, n := range at {
			syncs += n
		}
		// At most 8 instants per tenth of the timeout, for any number of sessions.
		if instants := slices.Collect(maps.Keys(at)); syncs < sessions*19 || syncs > sessions*21 || len(instants) > 8*20 || others != 0 {
			t.Errorf("%d syncs at %d instants, and %d other requests", syncs, len(instants), others)
		}
		apart := first.Timeout() / 80
		for when := range at {
			if off := when.UnixNano() % int64(apart); off > int64(time.Millisecond) && off < int64(apart-time.Millisecond) {
				t.Errorf("a sync was sent %v after an instant", time.Duration(off))
			}
		}
	})
}
