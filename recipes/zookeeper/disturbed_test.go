package zookeeper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The disturbed tests make a call once to count its requests. Then they make it again
// for each request and each disturbance. The sweeps of faultsweep_test.go lose
// connections and sessions; here every connection stays up and every request is
// answered. So a call has no excuse: it knows what has happened.

// disturbance is what meets one request of a call.
type disturbance struct {
	name      string
	cancels   bool  // the caller cancels while the request is on its way
	throttles int64 // so many requests, from that one on
}

var disturbances = []disturbance{
	{name: "throttled", throttles: 1},
	{name: "throttled twice", throttles: 2},
	{name: "cancelled", cancels: true},
	{name: "cancelled and throttled", cancels: true, throttles: 1},
}

// may reports whether a call that was disturbed may fail so.
func (d disturbance) may(err error) bool {
	if d.cancels {
		return errors.Is(err, context.Canceled)
	}
	return errors.Is(err, recipes.ErrThrottled)
}

// strike has the disturbance meet the session's request of that number, from 1 on, or
// none for 0, and counts the requests.
func (d disturbance) strike(srv *zkserver.Server, s recipes.Session, at int64, cancel context.CancelFunc) *atomic.Int64 {
	requests := new(atomic.Int64)
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID != s.ID() {
			return zkserver.Fault{}
		}
		n := requests.Add(1)
		if at == 0 || n < at {
			return zkserver.Fault{}
		}
		f := zkserver.Fault{Throttle: n < at+d.throttles}
		if n == at && d.cancels {
			// The answer comes when everybody waits, the caller or what goes on without it:
			// virtual time stands still before that.
			answer := make(chan struct{})
			f.Hold = answer
			cancel()
			time.AfterFunc(time.Millisecond, func() { close(answer) })
		}
		return f
	})
	return requests
}

// calm waits until everything that was left to the background is done. The rests of
// what insists add up to less than this, on virtual time.
func calm() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// patience bounds on virtual time what must end by itself, so that a test that hangs
// fails at once.
const patience = 10 * time.Minute

// running counts the goroutines of the caller's bubble.
func running() int {
	stacks := make([]byte, 1<<17)
	n := runtime.Stack(stacks, true)
	for n == len(stacks) { // there are more
		stacks = make([]byte, 2*n)
		n = runtime.Stack(stacks, true)
	}
	stacks = stacks[:n]
	header, _, _ := bytes.Cut(stacks, []byte("\n"))
	_, bubble, _ := strings.Cut(string(header), "synctest bubble ")
	return bytes.Count(stacks, []byte("synctest bubble "+bubble))
}

// remains is what a session has when its calls are over.
type remains struct{ watches, goroutines int }

func remaining(srv *zkserver.Server) remains {
	calm()
	return remains{srv.Watches(), running()}
}

// compare checks that there is no more than after an undisturbed run. A watch cannot be
// taken back, so one that a cancelled request has set may stay, for the next to find.
func (r remains) compare(t *testing.T, d disturbance, undisturbed remains) {
	t.Helper()
	if d.cancels {
		undisturbed.watches++
	}
	if r.watches > undisturbed.watches {
		t.Errorf("%d watches; undisturbed: %d", r.watches, undisturbed.watches)
	}
	if r.goroutines > undisturbed.goroutines {
		t.Errorf("%d goroutines; undisturbed: %d", r.goroutines, undisturbed.goroutines)
	}
}

// disturb runs something undisturbed, and then for each of its requests and each
// disturbance. run returns how many requests were sent. cases counts.
func disturb(t *testing.T, cases *atomic.Int64, run func(t *testing.T, d disturbance, at int64) (requests int64)) {
	requests := run(t, disturbances[0], 0)
	if t.Failed() {
		return
	}
	if requests == 0 {
		t.Fatal("nothing was sent")
	}
	for at := int64(1); at <= requests; at++ {
		for _, d := range disturbances {
			t.Run(fmt.Sprintf("request %d %s", at, d.name), func(t *testing.T) {
				cases.Add(1)
				run(t, d, at)
			})
		}
	}
}
