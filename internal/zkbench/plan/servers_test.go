package plan_test

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
)

func TestServersAreEstimatedFromOthers(t *testing.T) {
	at := func(servers int, v float64) plan.Measured {
		return plan.Measured{Servers: servers, Time: plan.Estimate{Value: v, Lo: v * 0.9, Hi: v * 1.1}}
	}
	measured := []plan.Measured{at(3, 1000), at(1, 500)}
	for n, want := range map[int]float64{1: 500, 2: 750, 3: 1000, 5: 1250, 7: 1500} {
		e, err := plan.OnServers(measured, n)
		if err != nil || e.Value != want || e.Lo > want || e.Hi < want {
			t.Errorf("%d servers: %+v, %v; want %v", n, e, err, want)
		}
	}
	if e, _ := plan.OnServers(measured, 5); e.Lo > 1000 || e.Hi < 1500 {
		t.Errorf("5 servers: %+v; want no growth and twice the growth in the interval", e)
	}
	if _, err := plan.OnServers([]plan.Measured{at(3, 1), at(3, 2)}, 5); !errors.Is(err, plan.ErrOneNumber) {
		t.Errorf("%v; want ErrOneNumber", err)
	}
	for n, want := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1, 5: 2} {
		if got := plan.Tolerated(n); got != want {
			t.Errorf("%d servers tolerate %d failures; want %d", n, got, want)
		}
	}
}

// By hand, of 3 servers with 100 each: 100 go to the others (150 each), 150 go (75 and
// 225), and 225 go.
func TestRestartsMoveSessions(t *testing.T) {
	for _, c := range []struct{ sessions, servers, want int }{{300, 3, 475}, {300, 1, 300}, {0, 3, 0}, {200, 2, 300}} {
		if got := plan.Moved(c.sessions, c.servers); got != c.want {
			t.Errorf("%d sessions on %d servers: %d reconnect; want %d", c.sessions, c.servers, got, c.want)
		}
	}
}
