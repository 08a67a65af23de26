package zkserver_test

import (
	"maps"
	"testing"

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
			if _, err := a.do(r[0], r[1:]...); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.Watches(); n != 1 {
			t.Errorf("watches: %d", n)
		}
		if _, err := b.do("setData", "/x"); err != nil {
			t.Fatal(err)
		}
		if _, err := a.do("ping"); err != nil { // takes the event off the pipe
			t.Fatal(err)
		}
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
