package lease

import (
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

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
