package link

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/expiry"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// heartbeatsPerTimeout is the number of heartbeats sent in one session timeout. The plugin's
// session asks the leader as often. In normal operation the last contact that the leader is
// known to have received is at most 0.6 of the timeout old. So three heartbeats in a row must
// fail before the session is given up.
const heartbeatsPerTimeout = 10

// clock computes how long ZooKeeper is certain to keep the session: the session timeout,
// counted from the plugin's last contact. An echo contains the age of that contact at the
// time when the plugin wrote the echo. The heartbeat was sent before that. So the heartbeat's
// sending time minus the age is no later than the contact, however long either message took.
//
// While the host holds something, only a contact that ZooKeeper's leader is known to have
// received counts. The plugin's session applies the same rule.
type clock struct {
	started chan struct{} // closed at the first echo
	changed chan struct{} // holds one element; wakes watchClock, because the deadline may be earlier now
	naps    *expiry.Clock // after a suspension the plugin reports the end of the session: watchClock's timer does not run in between

	mu      sync.Mutex
	timeout time.Duration
	sent    map[uint64]time.Time // heartbeats without an echo
	last    uint64
	holding bool
	contact time.Time     // no later than the last contact; zero before the first echo
	known   time.Time     // no later than the last contact that the leader has received
	heard   time.Time     // when the last echoed heartbeat was sent
	next    time.Time     // when watchClock computes the deadline again
	echoed  chan struct{} // closed at the next echo; nil while no goroutine waits
}

func newClock(timeout time.Duration) *clock {
	first := make(chan struct{})
	return &clock{naps: expiry.New(), timeout: timeout, started: first, echoed: first, changed: make(chan struct{}, 1), sent: make(map[uint64]time.Time)}
}

func (c *clock) heartbeat() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.sent[c.last] = time.Now()
	return c.last
}

// echo processes the echo of a heartbeat. It ignores the echo of a heartbeat that was never
// sent.
func (c *clock) echo(e *pb.BeatEcho) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent, ok := c.sent[e.GetNumber()]
	if !ok {
		return
	}
	for n := range c.sent {
		if n <= e.GetNumber() {
			delete(c.sent, n)
		}
	}
	c.heard = sent
	if c.echoed != nil {
		close(c.echoed)
		c.echoed = nil
	}
	// max: a negative age would be a contact in the future, and would extend the deadline.
	contact := sent.Add(-max(e.GetContactAge().AsDuration(), 0))
	known := contact
	if age := e.GetKnownContactAge(); age != nil {
		known = sent.Add(-max(age.AsDuration(), 0))
	}
	c.contact, c.known = later(c.contact, contact), later(c.known, known)
	if timeout := e.GetTimeout().AsDuration(); timeout > 0 && timeout != c.timeout {
		c.timeout = timeout
		signal(c.changed)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// hold sets whether the host holds something. With the first grant an earlier deadline may
// apply. It wakes watchClock only if that deadline is near, or earlier than its timer:
// waking a goroutine for each grant costs more than the grant.
func (c *clock) hold(holding bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := c.until(c.known); holding && !c.holding && (left < c.timeout/4 || left < time.Until(c.next)) {
		signal(c.changed)
	}
	c.holding = holding
}

// resumed requests a heartbeat at once, because another plugin has resumed the session.
// timeout is the one that the server granted to that plugin. A shorter timeout applies from
// now on, because the plugin may die before its first echo.
func (c *clock) resumed(timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if timeout > 0 {
		c.timeout = min(c.timeout, timeout)
	}
	signal(c.changed)
}

// sessionTimeout returns the timeout that the server granted last.
func (c *clock) sessionTimeout() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timeout
}

// contacted returns the contact from which the deadline counts, or the zero time before the
// first echo.
func (c *clock) contacted() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.basis()
}

// basis is contacted without the lock. The caller holds mu.
func (c *clock) basis() time.Time {
	if c.holding {
		return c.known
	}
	return c.contact
}

// proved reports whether the proven contacts leave enough time for a new grant.
func (c *clock) proved() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.known.IsZero() && c.until(c.known) >= c.timeout/heartbeatsPerTimeout
}

// since returns a channel that is closed at the next echo. It returns nil if a heartbeat sent
// at start or later has been echoed.
func (c *clock) since(start time.Time) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.heard.Before(start) {
		return nil
	}
	if c.echoed == nil {
		c.echoed = make(chan struct{})
	}
	return c.echoed
}

// awaitProof waits until the clock has a proof for a new grant, before the grant is returned.
// The plugin has the proof, but the host's last echo may be older. Then awaitProof sends a
// heartbeat and waits for its echo. A session that held something recently needs neither.
func (s *Session) awaitProof(ctx context.Context) error {
	if s.clock.proved() {
		return nil
	}
	start := time.Now()
	s.sendHeartbeat()
	for {
		next := s.clock.since(start)
		if next == nil {
			return nil
		}
		select {
		case <-next:
		case <-s.over.Done():
			return s.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// silence describes, for an error text, which side did not answer and for how long.
func (c *clock) silence() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := func(since time.Time) time.Duration { return time.Since(since).Round(time.Millisecond) }
	if time.Since(c.heard) >= c.timeout/2 {
		return fmt.Sprintf("the plugin has not answered, or this process did not run, for %v", elapsed(c.heard))
	}
	silence := fmt.Sprintf("the plugin has received nothing from ZooKeeper for %v", elapsed(c.contact))
	if c.holding {
		silence += fmt.Sprintf("; the leader is not known to have received anything from the session for %v", elapsed(c.known))
	}
	return silence
}

// remaining returns how long the session can still be relied on.
func (c *clock) remaining() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.contact.IsZero() {
		return c.timeout
	}
	return c.until(c.basis())
}

// nextCheck returns the time until watchClock must compute the deadline again: until the deadline
// passes, or the deadline that would apply if the host held something.
func (c *clock) nextCheck() time.Duration {
	wait := c.remaining()
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.until(c.known); known > 0 {
		wait = min(wait, known)
	}
	c.next = time.Now().Add(wait)
	return wait
}

// until returns how long a session with that last contact can be relied on. The caller holds mu.
func (c *clock) until(contact time.Time) time.Duration {
	return time.Until(c.naps.Deadline(contact, c.timeout))
}

// provedUntil returns the deadline that applies while the host holds something.
func (c *clock) provedUntil() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.naps.Deadline(c.known, c.timeout)
}

// watchClock sends heartbeats and ends the session at its deadline. Sending does not wait for
// the plugin. Heartbeats are small: a session without echoes has ended long before the stream's
// buffer is full.
func (s *Session) watchClock() {
	every := func() time.Duration { return max(s.Timeout()/heartbeatsPerTimeout, time.Millisecond) }
	ticker := time.NewTicker(every())
	defer ticker.Stop()
	started := s.clock.started
	s.sendHeartbeat()
	deadline := time.NewTimer(s.clock.nextCheck())
	defer deadline.Stop()
	for {
		calls := s.latest().calls
		select {
		case <-s.over.Done():
			return
		case <-calls.Broken(): // a plugin that breaks the protocol cannot be relied on
			s.lose(calls.Err())
		case <-ticker.C:
			s.sendHeartbeat()
		case <-started:
			started = nil
			deadline.Reset(s.clock.nextCheck())
		case <-s.clock.changed:
			ticker.Reset(every())
			s.sendHeartbeat()
			deadline.Reset(s.clock.nextCheck()) // fires at once if it has passed
		case <-deadline.C:
			s.checkClock()
			deadline.Reset(s.clock.nextCheck())
		}
	}
}

// sendHeartbeat sends in a separate goroutine. This keeps the stack of the goroutine that
// waits for the next tick at half of what sending needs.
func (s *Session) sendHeartbeat() {
	s.Spawn(func() {
		s.sending.Lock()
		defer s.sending.Unlock()
		b := &pb.Beat{Number: s.clock.heartbeat()}
		_ = s.latest().stream.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Beat{Beat: b}}) // Recv reports a broken stream
	})
}

// checkClock ends the session if its deadline has passed. Every method that reports the
// session's state calls it: a process that was stopped for longer than the session timeout
// runs other goroutines before its timers.
func (s *Session) checkClock() {
	if s.clock.remaining() > 0 {
		return
	}
	s.lose(fmt.Errorf("%w: %s", recipes.ErrDeadline, s.clock.silence()))
}
