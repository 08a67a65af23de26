package lease

import (
	"slices"
	"time"
)

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

// Proof holds what the answer to a leading request proves: the leader has asked for all
// contacts sent until asks, and has received those sent until knows. The zero value proves
// nothing.
type Proof struct{ asks, knows time.Duration }

// Asking records that a leading request is sent at that time. It returns what the answer will
// prove.
func (e *Evidence) Asking(l *Lease, at time.Time) Proof {
	now := at.Sub(l.start)
	e.age(now, youth(l.Timeout()))
	raise(&l.asked, now)
	return Proof{asks: e.old, knows: e.asked}
}

// Answered records a contact that was sent at the given time and is answered now, and what its
// answer proves.
func (e *Evidence) Answered(l *Lease, sent time.Time, p Proof) {
	c := contact{sent.Sub(l.start), time.Since(l.start)}
	raise(&l.contact, c.sent)
	e.keep(c, youth(l.Timeout()))
	e.asked = max(e.asked, p.asks)
	raise(&l.known, p.knows)
}

// keep adds a contact that was answered just now, unless it closely follows another.
func (e *Evidence) keep(c contact, youth time.Duration) {
	if n := len(e.young); n > 0 && c.answered-e.young[n-1].answered < youth/contactsKept {
		return
	}
	e.young = append(e.young, c)
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
