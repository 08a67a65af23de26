package session

import (
	"slices"
	"time"
)

// This file notes which contacts (requests and pings that were answered) the leader
// is known to have. The reasons are in doc.go, "What the leader knows".

const (
	// A contact is young, so that the leader may not have asked for it, for this
	// share of the session timeout after its answer. A quarter is half a tick where
	// the timeout is the smallest that ZooKeeper grants. An eighth of that is for
	// a leader that asks late.
	youthPercent = 28

	// confirmations is how many times in a session timeout a session that holds
	// something sends a request that the leader has to answer.
	confirmations = 10

	// contactsKept bounds, for one youth, how many contacts are noted: those that
	// follow another one closely are left out.
	contactsKept = 16
)

func youth(timeout time.Duration) time.Duration { return timeout * youthPercent / 100 }

// contact is when a request was sent, and when it was answered. Both are offsets
// from wire.start.
type contact struct{ sent, answered time.Duration }

// evidence is what the answers on one connection show. The connection's mutex
// guards it.
type evidence struct {
	young []contact     // oldest first
	old   time.Duration // the latest sending of those that are not young
	asked time.Duration // the latest sending of those that the leader has asked for
}

// heard notes a contact that was answered just now.
func (e *evidence) heard(c contact, youth time.Duration) {
	if n := len(e.young); n > 0 && c.answered-e.young[n-1].answered < youth/contactsKept {
		return
	}
	e.young = append(e.young, c)
}

// age moves on those that are not young any more.
func (e *evidence) age(now, youth time.Duration) {
	grown := 0
	for grown < len(e.young) && now-e.young[grown].answered >= youth {
		e.old = max(e.old, e.young[grown].sent)
		grown++
	}
	e.young = slices.Delete(e.young, 0, grown)
}

// proof is what the answer to a request proves that passes through the leader:
// that the leader has asked for contacts until asks, and knows those until knows.
type proof struct{ asks, knows time.Duration }

// leads reports whether a follower passes requests of that kind on to the leader
// and answers when the leader has.
func leads(op int32) bool { return op == opSync || operations[op].class == write }

// offset is a time as wire keeps it.
func (w *wire) offset(t time.Time) time.Duration { return t.Sub(w.start) }

// LastContact is when the last request was sent that a server has answered.
// While the session holds nothing its deadline counts from here.
func (s *Session) LastContact() time.Time { return s.wire.at(s.wire.contact.Load()) }

// KnownContact is when the last request was sent that the leader is proved to count:
// the leader expires the session no earlier than its timeout after that. While the
// session holds something its deadline counts from here. In a session that holds
// nothing it may be long ago, because nothing asks the leader.
func (s *Session) KnownContact() time.Time { return s.wire.at(s.wire.known.Load()) }

// Contact is the contact from which the session's deadline counts: KnownContact while
// it holds something, LastContact otherwise.
func (s *Session) Contact() time.Time {
	if s.holding() {
		return s.KnownContact()
	}
	return s.LastContact()
}
