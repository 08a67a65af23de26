package lease

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// marginDivisor is the rule for grants: the leader must be proved to keep the session
	// for another quarter of its timeout.
	marginDivisor = 4

	// confirmations is how many times in a session timeout a session that holds
	// something sends a request that the leader has to answer.
	confirmations = 10
)

// Lease is for how long a session may be relied on. All methods may be called from several
// goroutines.
type Lease struct {
	start   time.Time    // origin of the monotonic offsets below
	contact atomic.Int64 // when the last answered request was sent
	known   atomic.Int64 // when the last contact was sent that the leader is known to have
	asked   atomic.Int64 // when the last request was sent that the leader has to answer
	timeout atomic.Int64 // negotiated in the latest handshake, in nanoseconds
	holds   atomic.Int64

	mu    sync.Mutex
	timer *time.Timer // nil before Start and after Stop
	lost  func(error)
}

// New returns the lease of a session whose first contact counts from start.
func New(start time.Time) *Lease { return &Lease{start: start} }

// offset is a time as Lease keeps it.
func (l *Lease) offset(t time.Time) time.Duration { return t.Sub(l.start) }

func (l *Lease) at(offset *atomic.Int64) time.Time {
	return l.start.Add(time.Duration(offset.Load()))
}

func raise(to *atomic.Int64, offset time.Duration) {
	for {
		old := to.Load()
		if int64(offset) <= old || to.CompareAndSwap(old, int64(offset)) {
			return
		}
	}
}

// SetTimeout notes the timeout that the latest handshake has negotiated.
func (l *Lease) SetTimeout(timeout time.Duration) { l.timeout.Store(int64(timeout)) }

// Timeout is what the latest handshake has granted; 0 before the first.
func (l *Lease) Timeout() time.Duration { return time.Duration(l.timeout.Load()) }

// Accepted notes a connection that was accepted into the session. Its handshake, which
// was sent at that time, is a contact that the leader has.
func (l *Lease) Accepted(began time.Time) {
	raise(&l.contact, l.offset(began))
	raise(&l.known, l.offset(began))
}

// LastContact is when the last request was sent that a server has answered.
// While the session holds nothing its deadline counts from here.
func (l *Lease) LastContact() time.Time { return l.at(&l.contact) }

// KnownContact is when the last request was sent that the leader is proved to count:
// the leader expires the session no earlier than its timeout after that. While the
// session holds something its deadline counts from here. In a session that holds
// nothing it may be long ago, because nothing asks the leader.
func (l *Lease) KnownContact() time.Time { return l.at(&l.known) }

// Contact is the contact from which the session's deadline counts: KnownContact while
// it holds something, LastContact otherwise.
func (l *Lease) Contact() time.Time {
	if l.Holds() > 0 {
		return l.KnownContact()
	}
	return l.LastContact()
}

// Begin begins a hold and reports true if the leader is proved to keep the session for
// another quarter of its timeout. End takes it back, once for each Begin.
func (l *Lease) Begin() bool {
	timeout := l.Timeout()
	if time.Since(l.KnownContact()) > timeout-timeout/marginDivisor {
		return false
	}
	if l.holds.Add(1) == 1 {
		l.Reset()
	}
	return true
}

// End is the end of what Begin has begun.
func (l *Lease) End() { l.holds.Add(-1) }

// Holds is how many holds have begun and not ended.
func (l *Lease) Holds() int64 { return l.holds.Load() }

// Old reports whether the proof would soon be too old for a grant.
func (l *Lease) Old() bool { return time.Since(l.KnownContact()) > l.Timeout()/2 }

// Interval is how far apart the leader is asked while something is held.
func (l *Lease) Interval() time.Duration { return l.Timeout() / confirmations }

// LastAsked is when the last request was sent that the leader has to answer.
func (l *Lease) LastAsked() time.Time { return l.at(&l.asked) }

// Remaining is how long the session may still be relied on without another contact. It is
// trusted for its timeout after one, less a twentieth for clocks that run at different
// rates and timers that fire late.
//
// A server on which the session is resumed may grant another timeout than the one
// before; then that counts.
func (l *Lease) Remaining() time.Duration {
	timeout := l.Timeout()
	return time.Until(l.Contact().Add(timeout - timeout/20))
}

// Start has lost called with the reason when nothing is left: by a timer, or by Check.
// There is no deadline before, for the handshake is being answered.
func (l *Lease) Start(lost func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost, l.timer = lost, time.AfterFunc(l.Remaining(), l.Check)
}

// Reset is for an earlier deadline: when a hold begins, or a smaller timeout was granted.
func (l *Lease) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Reset(l.Remaining())
	}
}

// Stop ends the deadline of a session that is over.
func (l *Lease) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// Check has the session lost if there was no contact for its timeout. It also
// serves as the watchdog of a connection that go-zookeeper has wedged.
func (l *Lease) Check() {
	l.mu.Lock()
	if l.timer == nil {
		l.mu.Unlock()
		return
	}
	remaining := l.Remaining()
	if remaining > 0 {
		l.timer.Reset(remaining)
	}
	l.mu.Unlock()
	if remaining > 0 {
		return
	}
	silent := func(since time.Time) time.Duration { return time.Since(since).Round(time.Millisecond) }
	err := fmt.Errorf("%w: no server has answered for %v", recipes.ErrDeadline, silent(l.LastContact()))
	if l.Holds() > 0 {
		err = fmt.Errorf("%w; the leader is not known to have heard of the session for %v", err, silent(l.KnownContact()))
	}
	l.lost(err)
}
