package lease

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/expiry"
)

// The monotonic clock of a suspended machine does not run, but the leader's does.
func TestASuspensionCounts(t *testing.T) {
	const timeout = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var asleep time.Duration // the monotonic clock does not run in that time
		l := New(time.Now())
		l.naps = expiry.NewWith(func() time.Duration { return asleep })
		l.SetTimeout(timeout)
		var reason error
		l.Start(func(err error) { reason = err })
		defer l.Stop()
		time.Sleep(time.Second)
		asleep += 6 * time.Second
		if until := time.Until(l.ProvedUntil()); until != 2500*time.Millisecond {
			t.Errorf("the proof is good for %v", until)
		}
		if l.Check(); reason != nil {
			t.Error(reason)
		}
		time.Sleep(time.Second) // eight seconds after the contact: too late for a grant
		if l.Begin() {
			t.Error("a grant, although the leader is not proved to keep the session")
		}
		asleep += 2 * time.Second
		time.Sleep(time.Millisecond)
		if l.Check(); reason == nil || !strings.Contains(reason.Error(), "no server has answered for 10.001s; this machine was suspended for 8s of it") {
			t.Error(reason)
		}
		// After the next contact the suspension is over.
		time.Sleep(time.Nanosecond)
		l.Accepted(time.Now())
		if left := l.Remaining(); left != timeout-timeout/20 {
			t.Errorf("%v remain after another contact", left)
		}
	})
}
