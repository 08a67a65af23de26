package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// beatsPerTimeout is how many beats are sent in one session timeout. The plugin's
// session asks the leader as often. As long as all is well, a contact that the
// leader knows is at most 0.6 of the timeout old. So three beats in a row have to
// fail before the session is given up.
const beatsPerTimeout = 10

// clock knows until when ZooKeeper is certain to keep the session: for the session
// timeout after the plugin's last contact. An echo tells how old that contact was
// when the echo was written. The beat was sent before that. So the contact was not
// earlier than that age before the beat's sending, however long either message was
// under way.
//
// While the host holds something, a contact counts only when ZooKeeper's leader is
// known to have heard of it, as for the session in the plugin.
type clock struct {
	started chan struct{} // closed at the first echo
	changed chan struct{} // holds one element when the deadline may be an earlier one

	mu      sync.Mutex
	timeout time.Duration
	sent    map[uint64]time.Time // beats that are not echoed
	last    uint64
	holding bool
	contact time.Time     // no later than the last contact; zero before the first echo
	known   time.Time     // no later than the last one that the leader knows
	heard   time.Time     // when the last beat that was echoed was sent
	next    time.Time     // when left is looked at again
	echoed  chan struct{} // closed at the next echo; nil while no goroutine waits
}

func newClock(timeout time.Duration) *clock {
	return &clock{timeout: timeout, started: make(chan struct{}), changed: make(chan struct{}, 1), sent: make(map[uint64]time.Time)}
}

// beat notes the sending of a beat now and returns its number.
func (c *clock) beat() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.sent[c.last] = time.Now()
	return c.last
}

// echo is what the echo of a beat tells.
type echo struct {
	number  uint64
	age     time.Duration // of the last contact
	known   time.Duration // of the last one that the leader knows
	timeout time.Duration // 0: as before
}

func toEcho(e *pb.BeatEcho) echo {
	age := e.GetContactAge().AsDuration()
	told := echo{number: e.GetNumber(), age: age, known: age, timeout: e.GetTimeout().AsDuration()}
	if known := e.GetKnownContactAge(); known != nil {
		told.known = known.AsDuration()
	}
	return told
}

// echo notes the echo of a beat. One of a beat that was never sent is ignored.
func (c *clock) echo(e echo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent, ok := c.sent[e.number]
	if !ok {
		return
	}
	for n := range c.sent {
		if n <= e.number {
			delete(c.sent, n)
		}
	}
	c.heard = sent
	if c.echoed != nil {
		close(c.echoed)
		c.echoed = nil
	}
	if c.contact.IsZero() {
		close(c.started)
	}
	// A contact in the future would only stretch the deadline.
	c.contact = later(c.contact, sent.Add(-max(e.age, 0)))
	c.known = later(c.known, sent.Add(-max(e.known, 0)))
	if e.timeout > 0 && e.timeout != c.timeout {
		c.timeout = e.timeout
		c.poke()
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// hold says whether the host holds something. If the deadline that counts then is near,
// or earlier than the one that is waited for, the plugin is asked at once, and not by the
// next beat. It mostly is not: to wake somebody for each grant would cost more than the
// grant.
func (c *clock) hold(holding bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := c.until(c.known); holding && !c.holding && (left < c.timeout/4 || left < time.Until(c.next)) {
		c.poke()
	}
	c.holding = holding
}

// resumed has another plugin asked at once. The session goes on with the timeout that it
// was granted there. A smaller one counts from now on, because that plugin may die before
// its first echo.
func (c *clock) resumed(timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if timeout > 0 {
		c.timeout = min(c.timeout, timeout)
	}
	c.poke()
}

func (c *clock) poke() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// sessionTimeout is the one that the server has granted last.
func (c *clock) sessionTimeout() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timeout
}

// contacted returns the contact from which the deadline counts; the zero time before the
// first echo.
func (c *clock) contacted() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holding {
		return c.known
	}
	return c.contact
}

// proved reports whether the contacts that the leader is proved to have give a new grant
// some time.
func (c *clock) proved() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.known.IsZero() && c.until(c.known) >= c.timeout/beatsPerTimeout
}

// since returns a channel that is closed at the next echo, or nil if a beat sent at that
// time or later was echoed.
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

// catchUp has the clock learn, before a grant is returned, what the plugin's session has
// proved for it. The last echo may be older than that proof: then it asks for another. A
// session that has held something of late does not have to.
func (s *session) catchUp(ctx context.Context) error {
	if s.clock.proved() {
		return nil
	}
	start := time.Now()
	s.beat()
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

// silence says, for people, which side was not heard, and for how long.
func (c *clock) silence() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := func(since time.Time) time.Duration { return time.Since(since).Round(time.Millisecond) }
	if time.Since(c.heard) >= c.timeout/2 {
		return fmt.Sprintf("the plugin has not answered, or this process did not run, for %v", elapsed(c.heard))
	}
	silence := fmt.Sprintf("the plugin has heard nothing from ZooKeeper for %v", elapsed(c.contact))
	if c.holding {
		silence += fmt.Sprintf("; the leader is not known to have heard of the session for %v", elapsed(c.known))
	}
	return silence
}

// remaining returns how long the session can still be relied on.
func (c *clock) remaining() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.contact.IsZero():
		return c.timeout
	case c.holding:
		return c.until(c.known)
	}
	return c.until(c.contact)
}

// look returns when remaining is to be looked at again: when it has passed, or would have if
// the host held something by then.
func (c *clock) look() time.Duration {
	wait := c.remaining()
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.until(c.known); known > 0 {
		wait = min(wait, known)
	}
	c.next = time.Now().Add(wait)
	return wait
}

// until returns how long a session can be relied on that was in contact then. A
// twentieth is left for clocks that run at different rates and timers that fire late,
// as the session in the plugin does.
func (c *clock) until(contact time.Time) time.Duration {
	return time.Until(contact.Add(c.timeout - c.timeout/20))
}

// watchClock has the beats sent, and ends the session at its deadline. Sending
// does not wait for the plugin: beats are small, and what the stream buffers
// without an answer lasts for far longer than a session without echoes.
func (s *session) watchClock() {
	every := func() time.Duration { return max(s.Timeout()/beatsPerTimeout, time.Millisecond) }
	ticker := time.NewTicker(every())
	defer ticker.Stop()
	started := s.clock.started
	s.beat()
	deadline := time.NewTimer(s.clock.look())
	defer deadline.Stop()
	for {
		calls := s.latest().calls
		select {
		case <-s.over.Done():
			return
		case <-calls.Broken(): // a plugin that makes no sense cannot be relied on
			s.lose(calls.Err())
		case <-ticker.C:
			s.beat()
		case <-started:
			started = nil
			deadline.Reset(s.clock.look())
		case <-s.clock.changed:
			ticker.Reset(every())
			s.beat()
			deadline.Reset(s.clock.look()) // which is at once if it has passed
		case <-deadline.C:
			s.checkClock()
			deadline.Reset(s.clock.look())
		}
	}
}

// A goroutine of its own sends: the one that waits for the next beat keeps half of the
// stack that sending takes.
func (s *session) beat() {
	s.spawn(func() {
		s.beating.Lock()
		defer s.beating.Unlock()
		b := &pb.Beat{Number: s.clock.beat()}
		_ = s.latest().stream.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Beat{Beat: b}}) // Recv tells of a broken stream
	})
}

// checkClock ends the session if its deadline has passed. Everything that answers
// for the session calls it: a process that was stopped for longer than the session
// timeout runs other goroutines before its timers.
func (s *session) checkClock() {
	if s.clock.remaining() > 0 {
		return
	}
	s.lose(fmt.Errorf("%w: %s", recipes.ErrDeadline, s.clock.silence()))
}
