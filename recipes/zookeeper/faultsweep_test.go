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
	at   func(cancel context.CancelFunc) zkserver.Fault
	then zkserver.Fault // at the next request
	may  []error        // that the victim may then see; it may also succeed
}

var faults = []fault{
	{name: "connection lost before the request", at: func(context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{CloseBefore: true}
	}},
	{name: "reply lost after the commit", at: func(context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{DropReply: true}
	}},
	{name: "reply lost after the commit, and the connection before the next request", at: func(context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{DropReply: true}
	}, then: zkserver.Fault{CloseBefore: true}},
	{name: "throttled", at: func(context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{Throttle: true}
	}, may: []error{recipes.ErrThrottled}},
	{name: "reply lost after the commit, and the next request throttled", at: func(context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{DropReply: true}
	}, then: zkserver.Fault{Throttle: true}, may: []error{recipes.ErrThrottled}},
	{name: "connection lost after the reply", at: func(context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{CloseAfter: true}
	}},
	{name: "session expired before the request", at: func(context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{ExpireBefore: true}
	}, may: []error{recipes.ErrSessionLost}},
	{name: "session expired after the commit", at: func(context.CancelFunc) zkserver.Fault {
		return zkserver.Fault{ExpireAfter: true}
	}, may: []error{recipes.ErrSessionLost}},
	{name: "cancelled at the request", at: func(cancel context.CancelFunc) zkserver.Fault {
		cancel()
		return zkserver.Fault{}
	}, may: []error{context.Canceled}},
	{name: "cancelled, and the connection lost before the request", at: func(cancel context.CancelFunc) zkserver.Fault {
		cancel()
		return zkserver.Fault{CloseBefore: true}
	}, may: []error{context.Canceled}},
	{name: "cancelled, and the reply lost after the commit", at: func(cancel context.CancelFunc) zkserver.Fault {
		cancel()
		return zkserver.Fault{DropReply: true}
	}, may: []error{context.Canceled}},
}

// strike has the fault happen at the victim's request of that number, from 1 on,
// and counts them.
func (f fault) strike(srv *zkserver.Server, victim recipes.Session, at int64, cancel context.CancelFunc) (requests *atomic.Int64) {
	requests = new(atomic.Int64)
	id := victim.ID()
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID != id {
			return zkserver.Fault{}
		}
		switch n := requests.Add(1); {
		case n == at:
			return f.at(cancel)
		case n == at+1:
			return f.then
		}
		return zkserver.Fault{}
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
