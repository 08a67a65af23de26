package lease

import (
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// Whoever looks at the deadline while the handshake is being answered finds a
// timeout, and neither a timer nor a contact. He waits for nothing, and nobody waits for him.
func TestALeaseWithoutADeadlineCanBeAsked(t *testing.T) {
	l := New(time.Now().Add(-time.Hour))
	l.SetTimeout(time.Second)
	if l.Remaining() > 0 {
		t.Error("the case was not met")
	}
	l.Check() // there is nobody to tell of a loss
	if !l.mu.TryLock() {
		t.Error("the lease stays locked")
	}
}

// What is known of a time never becomes less.
func TestWhatIsKnownIsOnlyRaised(t *testing.T) {
	l := New(time.Now())
	for _, offset := range []time.Duration{5, 3, 7, 7} {
		l.Accepted(l.start.Add(offset))
	}
	if l.known.Load() != 7 || l.contact.Load() != 7 {
		t.Errorf("known %d, contact %d; want 7", l.known.Load(), l.contact.Load())
	}
}
