package lease

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

// The test takes the steps of "What the leader has received" in doc.go, one by one.
func TestWhatTheAnswersOnAConnectionProve(t *testing.T) {
	const timeout = 10 * time.Second
	for _, tt := range []struct {
		name  string
		steps func(c *connection)
		known bool // whether the first contact is known to have been received
	}{
		{"no sync", func(c *connection) {
			for range 20 {
				time.Sleep(timeout / 5)
				c.ping()
			}
		}, false},
		{"syncs that come too soon", func(c *connection) {
			for range 2 {
				time.Sleep(timeout / 10)
				c.sync()
			}
		}, false},
		{"one sync", func(c *connection) {
			time.Sleep(timeout)
			c.sync()
		}, false},
		{"a sync that was sent too soon and answered late, and another", func(c *connection) {
			time.Sleep(timeout / 10)
			answer := c.ask()
			time.Sleep(timeout / 2)
			answer()
			c.sync()
		}, false},
		{"two syncs", func(c *connection) {
			time.Sleep(youth(timeout))
			c.sync()
			c.sync()
		}, true},
		{"two pings, as after refusals and reads", func(c *connection) {
			time.Sleep(youth(timeout))
			c.ping()
			c.ping()
		}, false},
		{"two syncs at once", func(c *connection) {
			time.Sleep(timeout)
			first, second := c.ask(), c.ask()
			first()
			second()
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &connection{lease: New(time.Now())}
				c.lease.SetTimeout(timeout)
				time.Sleep(time.Second)
				first := time.Now()
				c.ping()
				tt.steps(c)
				if known := !c.lease.KnownContact().Before(first); known != tt.known {
					t.Errorf("known: %v", known)
				}
			})
		})
	}
}

// connection is a connection whose server answers when the test says so.
type connection struct {
	lease    *Lease
	evidence Evidence
}

// ask sends a leading request. Calling answer answers it.
func (c *connection) ask() (answer func()) {
	at := time.Now()
	proof := c.evidence.Asking(c.lease, at)
	return func() { c.evidence.Answered(c.lease, at, proof) }
}

func (c *connection) sync() { c.ask()() }

func (c *connection) ping() { c.evidence.Answered(c.lease, time.Now(), Proof{}) }

// A session may send thousands of requests a second, and may send pings for months. Neither needs
// a leading request.
func TestContactsAreNotedWithinBounds(t *testing.T) {
	const timeout = 10 * time.Second
	for _, interval := range []time.Duration{time.Millisecond, timeout / 3} {
		synctest.Test(t, func(t *testing.T) {
			c := &connection{lease: New(time.Now())}
			c.lease.SetTimeout(timeout)
			for range 20_000 {
				time.Sleep(interval)
				c.ping()
				if n := cap(c.evidence.young); n > 2*contactsKept {
					t.Fatalf("room for %d contacts", n)
				}
			}
			most := max(youth(timeout)+2*youth(timeout)/contactsKept, interval)
			if late := time.Since(c.lease.start) - c.evidence.old; late > most {
				t.Errorf("the last one that is not young is %v old", late)
			}
		})
	}
}

// A contact that closely follows another is not kept. A contact is young for less than youth.
func TestTheBoundsOfYouth(t *testing.T) {
	const timeout = 10 * time.Second
	youth := youth(timeout)
	gap := youth / contactsKept
	for after, want := range map[time.Duration]struct {
		kept int
		old  time.Duration // when the latest contact that is not young was sent
	}{0: {1, 0}, gap - 1: {1, 0}, gap: {2, 0}, youth - 1: {2, 0}, youth: {1, 5}, youth + 1: {1, 5}} {
		synctest.Test(t, func(t *testing.T) {
			c := &connection{lease: New(time.Now())}
			c.lease.SetTimeout(timeout)
			time.Sleep(5 * time.Nanosecond)
			c.ping()
			time.Sleep(after)
			c.ping()
			if e := c.evidence; len(e.young) != want.kept || e.old != want.old {
				t.Errorf("%v after its answer, %d contacts are young and the latest old one is %d; want %v", after, len(e.young), e.old, want)
			}
		})
	}
	e := Evidence{young: []contact{{5, 10}}, old: 7}
	if e.age(10+youth, youth); e.old != 7 {
		t.Errorf("an earlier contact has taken the place of a later one: %d", e.old)
	}
}

// The age of the proved contact just before the next proof, in hundredths of the timeout: see "Why
// ten" in doc.go. Pauses are those between the syncs, repeated; 0 is the second of a pair.
func TestTheAgeOfTheProofUnderASchedule(t *testing.T) {
	const timeout = 100 * time.Second
	for _, tt := range []struct {
		name   string
		pauses []time.Duration
		trip   time.Duration // from a request to its answer
		age    time.Duration
	}{
		{"Interval", []time.Duration{timeout / Confirmations}, 0, 50 * time.Second},
		{"ten, with round trips of 2 % of the timeout", []time.Duration{10 * time.Second}, 2 * time.Second, 52 * time.Second},
		{"ten, with longer round trips", []time.Duration{10 * time.Second}, 2100 * time.Millisecond, 62100 * time.Millisecond},
		{"nine", []time.Duration{timeout/9 + 1}, 0, 55555555560},
		{"eight", []time.Duration{timeout / 8}, 0, 62500 * time.Millisecond},
		{"seven", []time.Duration{timeout/7 + 1}, 0, 57142857144},
		{"pairs every quarter", []time.Duration{timeout / 4, 0}, 0, 75 * time.Second},
		{"pairs every delay", []time.Duration{youth(timeout), 0}, 0, 56 * time.Second},
		{"nine and a half", []time.Duration{10 * time.Second, 11 * time.Second}, 0, 53 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &connection{lease: New(time.Now())}
				c.lease.SetTimeout(timeout)
				var most time.Duration
				for n := range 100 {
					answer := c.ask()
					time.Sleep(tt.trip)
					if n > 20 {
						most = max(most, time.Since(c.lease.KnownContact()))
					}
					answer()
					time.Sleep(max(tt.pauses[n%len(tt.pauses)]-tt.trip, 0))
				}
				if most != tt.age {
					t.Errorf("at most %v; want %v", most, tt.age)
				}
			})
		})
	}
}

// An answer of one server proves nothing about another. The leader may handle a request that
// came through the second server before what the first was sent.
func TestAProofDoesNotMoveToAnotherConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		first := &connection{lease: New(time.Now())}
		second := &connection{lease: first.lease}
		first.lease.SetTimeout(timeout)
		time.Sleep(time.Second)
		contact := time.Now()
		first.ping()
		time.Sleep(youth(timeout))
		first.sync()
		second.sync()
		if !first.lease.KnownContact().Before(contact) {
			t.Errorf("the contact of %v is known: the proof is of two servers", contact)
		}
		first.sync()
		if first.lease.KnownContact().Before(contact) {
			t.Error("two syncs of one connection prove nothing: the case was not met")
		}
	})
}

func TestMain(m *testing.M) { leaktest.Main(m) }

// Callers may check the deadline during the handshake, when the lease has a timeout but neither
// a timer nor a contact. Check then reports nothing and does not block.
func TestALeaseWithoutADeadlineCanBeChecked(t *testing.T) {
	l := New(time.Now().Add(-time.Hour))
	l.SetTimeout(time.Second)
	if l.Remaining() > 0 {
		t.Error("the case was not met")
	}
	l.Check() // no function to report a loss to
	if !l.mu.TryLock() {
		t.Error("the lease stays locked")
	}
}

// An earlier contact never replaces a later one.
func TestContactsOnlyIncrease(t *testing.T) {
	l := New(time.Now())
	for _, offset := range []time.Duration{5, 3, 7, 7} {
		l.Accepted(l.start.Add(offset))
	}
	if l.known.Load() != 7 || l.contact.Load() != 7 {
		t.Errorf("known %d, contact %d; want 7", l.known.Load(), l.contact.Load())
	}
}

// The leader expires the session by the timeout that a later server has granted, even if that
// server's handshake fails after its answer.
func TestASmallerTimeoutCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begun := New(time.Now()), time.Now()
		l.SetTimeout(10 * time.Second)
		lost := make(chan error, 1)
		l.Start(func(err error) { lost <- err })
		time.Sleep(time.Second)
		l.SetTimeout(2 * time.Second)
		<-lost
		if after := time.Since(begun); after != 1900*time.Millisecond {
			t.Errorf("lost after %v", after)
		}
	})
}

// A grant needs a proof that is good for another quarter of the timeout.
func TestTheMarginOfAGrant(t *testing.T) {
	const timeout = 8 * time.Second
	for age, granted := range map[time.Duration]bool{0: true, 6 * time.Second: true, 6*time.Second + 1: false, timeout: false} {
		synctest.Test(t, func(t *testing.T) {
			l := New(time.Now())
			l.SetTimeout(timeout)
			time.Sleep(age)
			l.contact.Store(int64(age)) // a contact that the leader is not proved to have received
			if begun := l.Begin(); begun != granted || begun != (l.Holds() == 1) {
				t.Errorf("with a proof of %v ago: granted %v, %d holds", age, begun, l.Holds())
			}
		})
	}
}
