package zkserver_test

import (
	"maps"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

func TestCountersSayWhatWasExecuted(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a, b := connect(t, s, nil), connect(t, s, nil)
		before := s.Counters()
		for _, r := range [][]string{
			{"create", "/x"}, {"create", "/x"}, {"getData", "/x", "watch"}, {"ping"}, {"getChildren", "/"},
			{"auth", "scheme=digest", "secret=user:password"},
		} {
			must.Get(a.do(r[0], r[1:]...))(t)
		}
		if n := s.Watches(); n != 1 {
			t.Errorf("watches: %d", n)
		}
		must.Get(b.do("setData", "/x"))(t)
		must.Get(a.do("ping"))(t) // reads the event from the pipe
		got := s.Counters().Sub(before)
		want := map[zkserver.Op]int64{
			zkserver.OpCreate: 2, zkserver.OpGetData: 1, zkserver.OpGetChildren: 1, zkserver.OpSetData: 1,
			zkserver.OpAuth: 1,
		}
		if !maps.Equal(got.Requests, want) {
			t.Errorf("requests: %v", got.Requests)
		}
		if got.Writes != 3 || got.Reads != 2 || got.Pings != 2 || got.WatchEvents != 1 || got.Connections != 0 {
			t.Errorf("%+v", got)
		}
		if got.BytesIn == 0 || got.BytesOut == 0 || s.Watches() != 0 {
			t.Errorf("%+v, %d watches", got, s.Watches())
		}
	})
}
