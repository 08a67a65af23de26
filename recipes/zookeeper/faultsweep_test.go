package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The fault sweep runs a scenario once to count the requests of its victim. Then it
// runs the scenario again for each of those requests and each fault, with the fault at
// that request. After every case no two contenders were granted at once and nothing
// hangs. Another contender gets its turn while the victim's session lives, and no znode
// of the victim is left.

// A fault is what goes wrong at a request; the zero fault is nothing.
type fault struct {
	name string
	at   func(srv *zkserver.Server, session int64, cancel context.CancelFunc) zkserver.Fault
	may  []error // that the victim may then see; it may also succeed
}

var faults = []fault{
	{"connection lost before the request", func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{CloseBefore: true}
	}, nil},
	{"reply lost after the commit", func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{DropReply: true}
	}, nil},
	{"connection lost after the reply", func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{CloseAfter: true}
	}, nil},
	{"session expired before the request", func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{ExpireBefore: true}
	}, []error{recipes.ErrSessionLost}},
	{"session expired after the commit", func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{ExpireAfter: true}
	}, []error{recipes.ErrSessionLost}},
	{"cancelled at the request", func(_ *zkserver.Server, _ int64, cancel context.CancelFunc) zkserver.Fault {
		cancel()
		return zkserver.Fault{}
	}, []error{context.Canceled}},
	{"cancelled, and the connection lost before the request", func(_ *zkserver.Server, _ int64, cancel context.CancelFunc) zkserver.Fault {
		cancel()
		return zkserver.Fault{CloseBefore: true}
	}, []error{context.Canceled}},
	{"cancelled, and the reply lost after the commit", func(_ *zkserver.Server, _ int64, cancel context.CancelFunc) zkserver.Fault {
		cancel()
		return zkserver.Fault{DropReply: true}
	}, []error{context.Canceled}},
}

// strike has the fault happen at the victim's request of that number, from 1 on,
// and counts them.
func (f fault) strike(srv *zkserver.Server, victim recipes.Session, at int64, cancel context.CancelFunc) (requests *atomic.Int64) {
	requests = new(atomic.Int64)
	id := victim.ID()
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID != id || requests.Add(1) != at {
			return zkserver.Fault{}
		}
		return f.at(srv, id, cancel)
	})
	return requests
}

// allows reports whether the victim may end with err.
func (f fault) allows(err error) bool {
	return err == nil || slices.ContainsFunc(f.may, func(e error) bool { return errors.Is(err, e) })
}

// A scenario is what is swept: run runs it with a fault at a request, 0 for none,
// and returns the number of requests that the victim made.
type scenario struct {
	name string
	run  func(t *testing.T, at int64, f fault) (requests int64)
}

// sweepFaults runs all cases and prints their number. A run without a fault makes
// at least so many requests.
func sweepFaults(t *testing.T, what string, atLeast int64, scenarios []scenario) {
	var cases atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for _, sc := range scenarios {
			t.Run(sc.name, func(t *testing.T) {
				t.Parallel()
				requests := sc.run(t, 0, fault{})
				if t.Failed() || requests < atLeast {
					t.Fatalf("the clean run has failed, or made only %d requests", requests)
				}
				for at := int64(1); at <= requests; at++ {
					for _, f := range faults {
						t.Run(fmt.Sprintf("%s %d", f.name, at), func(t *testing.T) {
							cases.Add(1)
							sc.run(t, at, f)
						})
					}
				}
			})
		}
	})
	fmt.Printf("fault sweep of %s: %d cases\n", what, cases.Load())
}

const sweepPath = "/parent/line"
