package lease

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/expiry"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// marginDivisor is the rule for grants: the leader must be proved to keep the session for
	// another quarter of its timeout.
	marginDivisor = 4

	// Confirmations is the number of leading requests that a session with a hold sends per
	// session timeout.
	Confirmations = 10
)

// Lease computes how long a session can rely on its own life. All methods are safe for
// concurrent use.
type Lease struct {
	start   time.Time    // origin of the monotonic offsets below
	contact atomic.Int64 // when the last request was sent that a server has answered
	known   atomic.Int64 // when the last contact was sent that the leader is proved to have received
	asked   atomic.Int64 // when the last leading request was sent that was answered without an error
	timeout atomic.Int64 // negotiated in the latest handshake, in nanoseconds
	holds   atomic.Int64
	naps    *expiry.Clock

	mu    sync.Mutex
	timer *time.Timer // nil before Start and after Stop
	lost  func(error)
}

// New returns the lease of a session whose first contact counts from start.
func New(start time.Time) *Lease { return &Lease{start: start, naps: expiry.New()} }

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

// SetTimeout sets the timeout that the latest handshake has negotiated. The deadline may become
// earlier.
func (l *Lease) SetTimeout(timeout time.Duration) {
	l.timeout.Store(int64(timeout))
	l.reset()
}

// Timeout returns the timeout that the latest handshake has granted, 0 before the first
// handshake.
func (l *Lease) Timeout() time.Duration { return time.Duration(l.timeout.Load()) }

// Accepted records that a server has accepted a connection into the session. Its handshake was
// sent at began, and is a contact that the leader has received.
func (l *Lease) Accepted(began time.Time) {
	raise(&l.contact, began.Sub(l.start))
	raise(&l.known, began.Sub(l.start))
}

// LastContact returns when the last request was sent that a server has answered. While the
// session holds nothing, its deadline counts from that time.
func (l *Lease) LastContact() time.Time { return l.at(&l.contact) }

// KnownContact returns when the last contact was sent that the leader is proved to have
// received. The leader expires the session no earlier than a timeout after that. While the
// session holds something, its deadline counts from that contact. If the session holds nothing,
// KnownContact may be long ago, because the session then sends no leading requests.
func (l *Lease) KnownContact() time.Time { return l.at(&l.known) }

// Contact returns the contact from which the session's deadline counts: KnownContact while the
// session holds something, LastContact otherwise.
func (l *Lease) Contact() time.Time {
	if l.Holds() > 0 {
		return l.KnownContact()
	}
	return l.LastContact()
}

// Begin begins a hold and returns true if the leader is proved to keep the session for another
// quarter of its timeout. Otherwise it does nothing and returns false. Call End once for each
// Begin that returned true.
func (l *Lease) Begin() bool {
	timeout, known := l.Timeout(), l.KnownContact()
	if time.Since(known)+l.naps.Slept(known) > timeout-timeout/marginDivisor {
		return false
	}
	if l.holds.Add(1) == 1 {
		l.reset()
	}
	return true
}

// End ends a hold that Begin has begun.
func (l *Lease) End() { l.holds.Add(-1) }

// Holds returns the number of holds that have begun and not ended.
func (l *Lease) Holds() int64 { return l.holds.Load() }

// Old reports whether the proof will soon be too old for a grant.
func (l *Lease) Old() bool { return time.Since(l.KnownContact()) > l.Timeout()/2 }

// Interval is the time between two leading requests while the session holds something.
func (l *Lease) Interval() time.Duration { return l.Timeout() / Confirmations }

// LastAsked returns when the last leading request was sent that was answered without an error.
func (l *Lease) LastAsked() time.Time { return l.at(&l.asked) }

// Remaining returns how long the session can rely on its own life without another contact. If the
// session moves to a server that grants a smaller timeout, that one counts.
func (l *Lease) Remaining() time.Duration {
	return time.Until(l.naps.Deadline(l.Contact(), l.Timeout()))
}

// ProvedUntil returns the deadline that applies while the session holds something.
func (l *Lease) ProvedUntil() time.Time { return l.naps.Deadline(l.KnownContact(), l.Timeout()) }

// Start starts the deadline. When nothing remains, the timer or Check calls lost with the
// reason. Before Start there is no deadline, because the handshake is not complete.
func (l *Lease) Start(lost func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost, l.timer = lost, time.AfterFunc(l.Remaining(), l.Check)
}

// reset arms the timer again after the deadline has become earlier: a hold began, or a server
// granted a smaller timeout.
func (l *Lease) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Reset(l.Remaining())
	}
}

// Stop stops the timer of a session that has ended.
func (l *Lease) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// Check ends the session if the deadline has passed. That also ends a session whose connection
// hangs inside go-zookeeper. The timer does not run while the machine is suspended, so another
// goroutine must call Check when the machine wakes.
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
	silent := func(since time.Time) time.Duration {
		return (time.Since(since) + l.naps.Slept(since)).Round(time.Millisecond)
	}
	err := fmt.Errorf("%w: no server has answered for %v", recipes.ErrDeadline, silent(l.LastContact()))
	if slept := l.naps.Slept(l.Contact()); slept > 0 {
		err = fmt.Errorf("%w; this machine was suspended for %v of it", err, slept.Round(time.Millisecond))
	}
	if l.Holds() > 0 {
		err = fmt.Errorf("%w; the leader is not known to have heard of the session for %v", err, silent(l.KnownContact()))
	}
	l.lost(err)
}

const (
	// A contact is young for this share of the session timeout after its answer: the leader may
	// not have asked the follower for it yet. A quarter of the timeout is half a tick if the
	// timeout is the smallest that ZooKeeper grants. An eighth of that is added for a late
	// ping.
	youthPercent = 28

	// contactsKept limits the contacts kept within one youth: a contact that closely follows
	// another is not kept.
	contactsKept = 16
)

func youth(timeout time.Duration) time.Duration { return timeout * youthPercent / 100 }

// contact holds when a request was sent and when it was answered, as offsets from Lease.start.
type contact struct{ sent, answered time.Duration }

// Evidence collects what the answers on one connection prove. Each connection begins with the
// zero value. Calls must not overlap.
type Evidence struct {
	young []contact     // oldest first
	old   time.Duration // when the latest contact that is not young was sent
	asked time.Duration // when the latest contact was sent that the leader has asked the follower for
}

// Proof holds what the answer to a leading request proves. The leader has asked for all contacts
// sent until asks, and has received those sent until knows. sent is when the request was sent. The
// zero value proves nothing.
type Proof struct{ sent, asks, knows time.Duration }

// Asking returns what the answer to a leading request, sent at that time, will prove.
func (e *Evidence) Asking(l *Lease, at time.Time) Proof {
	now := at.Sub(l.start)
	e.age(now, youth(l.Timeout()))
	return Proof{sent: now, asks: e.old, knows: e.asked}
}

// Answered records a contact that was sent at the given time and is answered now, and what its
// answer proves. It keeps no contact that closely follows another. It ages the others, because a
// session that holds nothing may never send a leading request. A contact that is old at an answer
// is old whenever a later request is sent.
func (e *Evidence) Answered(l *Lease, sent time.Time, p Proof) {
	c, youth := contact{sent.Sub(l.start), time.Since(l.start)}, youth(l.Timeout())
	raise(&l.contact, c.sent)
	e.age(c.answered, youth)
	if n := len(e.young); n == 0 || c.answered-e.young[n-1].answered >= youth/contactsKept {
		e.young = append(e.young, c)
	}
	e.asked = max(e.asked, p.asks)
	raise(&l.asked, p.sent)
	raise(&l.known, p.knows)
}

// age moves the contacts that are no longer young into old.
func (e *Evidence) age(now, youth time.Duration) {
	grown := 0
	for grown < len(e.young) && now-e.young[grown].answered >= youth {
		e.old = max(e.old, e.young[grown].sent)
		grown++
	}
	e.young = slices.Delete(e.young, 0, grown)
}
