package session

import (
	"testing"
	"testing/synctest"
	"time"
)

// The steps of doc.go, "What the leader knows", one by one.
func TestWhatTheAnswersOnAConnectionProve(t *testing.T) {
	const timeout = 10 * time.Second
	for _, tt := range []struct {
		name  string
		steps func(c *conn, ask func(op int32, well bool))
		known bool // of the contact that comes first
	}{
		{"no sync", func(c *conn, ask func(int32, bool)) {
			for range 20 {
				time.Sleep(timeout / 5)
				ask(opPing, true)
			}
		}, false},
		{"syncs that come too soon", func(c *conn, ask func(int32, bool)) {
			for range 2 {
				time.Sleep(timeout / 10)
				ask(opSync, true)
			}
		}, false},
		{"one sync", func(c *conn, ask func(int32, bool)) {
			time.Sleep(timeout)
			ask(opSync, true)
		}, false},
		{"a sync that was sent too soon and answered late, and another", func(c *conn, ask func(int32, bool)) {
			time.Sleep(timeout / 10)
			c.note(sent{op: opSync, at: time.Now()})
			time.Sleep(timeout / 2)
			c.answered(c.pending[0], true)
			c.pending = nil
			ask(opSync, true)
		}, false},
		{"two syncs", func(c *conn, ask func(int32, bool)) {
			time.Sleep(youth(timeout))
			ask(opSync, true)
			ask(opSync, true)
		}, true},
		{"two transactions", func(c *conn, ask func(int32, bool)) {
			time.Sleep(youth(timeout))
			ask(opCreate, true)
			ask(opMulti, true)
		}, true},
		{"two refusals, maybe of the follower", func(c *conn, ask func(int32, bool)) {
			time.Sleep(youth(timeout))
			ask(opSync, false)
			ask(opCreate, false)
		}, false},
		{"two reads", func(c *conn, ask func(int32, bool)) {
			time.Sleep(youth(timeout))
			ask(opGetData, true)
			ask(opExists, true)
		}, false},
		{"two syncs at once", func(c *conn, ask func(int32, bool)) {
			time.Sleep(timeout)
			c.note(sent{op: opSync, at: time.Now()})
			c.note(sent{op: opSync, at: time.Now()})
			for _, s := range c.pending {
				c.answered(s, true)
			}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire(nil)
				w.timeout.Store(int64(timeout))
				time.Sleep(time.Second)
				c := &conn{wire: w}
				ask := func(op int32, well bool) {
					c.note(sent{op: op, at: time.Now()})
					c.answered(c.pending[0], well)
					c.pending = nil
				}
				first := w.offset(time.Now())
				ask(opPing, true)
				tt.steps(c, ask)
				if known := w.known.Load() >= int64(first); known != tt.known {
					t.Errorf("known: %v", known)
				}
			})
		})
	}
}

// A session may send thousands of requests a second.
func TestContactsAreNotedWithinBounds(t *testing.T) {
	const timeout = 10 * time.Second
	var e evidence
	now := time.Duration(0)
	for range 100_000 {
		now += time.Millisecond
		e.heard(contact{now, now}, youth(timeout))
		e.age(now, youth(timeout))
		if len(e.young) > contactsKept+1 {
			t.Fatalf("%d contacts are noted", len(e.young))
		}
	}
	if late := now - e.old; late > youth(timeout)+2*youth(timeout)/contactsKept {
		t.Errorf("the last one that is not young is %v old", late)
	}
}

// The bounds of what is noted: contacts that follow another one closely are left out,
// and one that is as old as youth lasts is not young.
func TestTheBoundsOfYouth(t *testing.T) {
	const youth, gap = 1600, 1600 / contactsKept
	for after, kept := range map[time.Duration]int{0: 1, gap - 1: 1, gap: 2, gap + 1: 2} {
		var e evidence
		e.heard(contact{5, 10}, youth)
		e.heard(contact{6, 10 + after}, youth)
		if len(e.young) != kept {
			t.Errorf("of two contacts %d apart, %d are noted", after, len(e.young))
		}
	}
	for age, old := range map[time.Duration]time.Duration{0: 0, youth - 1: 0, youth: 5, youth + 1: 5} {
		var e evidence
		e.heard(contact{5, 10}, youth)
		e.age(10+age, youth)
		if e.old != old || (len(e.young) == 0) != (old > 0) {
			t.Errorf("%d after its answer the latest old contact is %d, and %d are young", age, e.old, len(e.young))
		}
	}
	e := evidence{old: 7}
	e.heard(contact{5, 10}, youth)
	if e.age(10+youth, youth); e.old != 7 {
		t.Errorf("an earlier contact has taken the place of a later one: %d", e.old)
	}
}

// What one server has answered proves nothing of another: the leader may handle a request
// that came by the second before what the first was told.
func TestAProofDoesNotMoveToAnotherConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		w := newWire(nil)
		w.timeout.Store(int64(timeout))
		time.Sleep(time.Second)
		ask := func(c *conn, op int32) {
			c.note(sent{op: op, at: time.Now()})
			c.answered(c.pending[0], true)
			c.pending = nil
		}
		first, second := &conn{wire: w}, &conn{wire: w}
		contact := w.offset(time.Now())
		ask(first, opPing)
		time.Sleep(youth(timeout))
		ask(first, opSync)
		ask(second, opSync)
		if known := w.known.Load(); known >= int64(contact) {
			t.Errorf("the contact of %v is known: the proof is of two servers", contact)
		}
		ask(first, opSync)
		if known := w.known.Load(); known < int64(contact) {
			t.Error("two syncs of one connection prove nothing: the case was not met")
		}
	})
}
