package lease

import (
	"slices"
	"time"
)

const (
	// A contact is young, so that the leader may not have asked for it, for this
	// share of the session timeout after its answer. A quarter is half a tick where
	// the timeout is the smallest that ZooKeeper grants. An eighth of that is for
	// a leader that asks late.
	youthPercent = 28

	// contactsKept bounds, for one youth, how many contacts are noted: those that
	// follow another one closely are left out.
	contactsKept = 16
)

func youth(timeout time.Duration) time.Duration { return timeout * youthPercent / 100 }

// contact is when a request was sent, and when it was answered. Both are offsets
// from Lease.start.
type contact struct{ sent, answered time.Duration }

// Evidence is what the answers on one connection show. A new connection begins with the
// zero value. It is for one goroutine at a time.
type Evidence struct {
	young []contact     // oldest first
	old   time.Duration // the latest sending of those that are not young
	asked time.Duration // the latest sending of those that the leader has asked for
}

// Proof is what the answer to a leading request proves: that the leader has asked for
// contacts until asks, and knows those until knows. The zero value proves nothing.
type Proof struct{ asks, knows time.Duration }

// Asking notes that a leading request is sent at that time, and returns what its answer
// will prove.
func (e *Evidence) Asking(l *Lease, at time.Time) Proof {
	now := l.offset(at)
	e.age(now, youth(l.Timeout()))
	raise(&l.asked, now)
	return Proof{asks: e.old, knows: e.asked}
}

// Answered notes a contact that was sent at that time and is answered now, and what its
// answer proves.
func (e *Evidence) Answered(l *Lease, sent time.Time, p Proof) {
	c := contact{l.offset(sent), l.offset(time.Now())}
	raise(&l.contact, c.sent)
	e.heard(c, youth(l.Timeout()))
	e.asked = max(e.asked, p.asks)
	raise(&l.known, p.knows)
}

// heard notes a contact that was answered just now.
func (e *Evidence) heard(c contact, youth time.Duration) {
	if n := len(e.young); n > 0 && c.answered-e.young[n-1].answered < youth/contactsKept {
		return
	}
	e.young = append(e.young, c)
}

// age moves on those that are not young any more.
func (e *Evidence) age(now, youth time.Duration) {
	grown := 0
	for grown < len(e.young) && now-e.young[grown].answered >= youth {
		e.old = max(e.old, e.young[grown].sent)
		grown++
	}
	e.young = slices.Delete(e.young, 0, grown)
}
