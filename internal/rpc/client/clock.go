package client

import (
	"fmt"
	"sync"
	"time"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// beatsPerTimeout is how many beats are sent in one session timeout. ZooKeeper
// is pinged three times in it, so that the contact is at most a third of the
// timeout old as long as all is well, and three beats in a row have to fail
// before the session is given up.
const beatsPerTimeout = 5

// clock knows until when ZooKeeper is certain to keep the session: from the
// sending of the last beat that was echoed, the session timeout less the time
// that, by the echo, had passed since the plugin's last contact. The beat was
// sent before the echo was written, so that the true deadline cannot be
// earlier, however long either message lay somewhere.
type clock struct {
	timeout time.Duration
	started chan struct{} // closed at the first echo

	mu       sync.Mutex
	sent     map[uint64]time.Time // beats that are not echoed
	last     uint64
	deadline time.Time // zero before the first echo
	heard    time.Time // when the last beat that was echoed was sent
}

func newClock(timeout time.Duration) *clock {
	return &clock{timeout: timeout, started: make(chan struct{}), sent: make(map[uint64]time.Time)}
}

// beat notes the sending of a beat now and returns its number.
func (c *clock) beat() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.sent[c.last] = time.Now()
	return c.last
}

// echo notes the echo of a beat. One of a beat that was never sent is ignored.
func (c *clock) echo(number uint64, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent, ok := c.sent[number]
	if !ok {
		return
	}
	for n := range c.sent {
		if n <= number {
			delete(c.sent, n)
		}
	}
	c.heard = sent
	first := c.deadline.IsZero()
	// A contact in the future would only stretch the deadline. A twentieth is
	// left for clocks that run at different rates and timers that fire late, as
	// the session in the plugin does.
	if d := sent.Add(c.timeout - c.timeout/20 - max(age, 0)); first || d.After(c.deadline) {
		c.deadline = d
	}
	if first {
		close(c.started)
	}
}

// silence says for people who has not been heard.
func (c *clock) silence() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.heard) < c.timeout/2 {
		return "the plugin has heard nothing from ZooKeeper"
	}
	return "the plugin has not answered, or this process did not run,"
}

// left returns how long the session can still be relied on.
func (c *clock) left() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline.IsZero() {
		return c.timeout
	}
	return time.Until(c.deadline)
}

// watchClock sends the beats, and ends the session at its deadline. Sending
// does not wait for the plugin: beats are small, and what the stream buffers
// without an answer lasts for far longer than a session without echoes.
func (s *session) watchClock() {
	ticker := time.NewTicker(max(s.timeout/beatsPerTimeout, time.Millisecond))
	defer ticker.Stop()
	started := s.clock.started
	s.beat()
	deadline := time.NewTimer(s.clock.left())
	defer deadline.Stop()
	for {
		select {
		case <-s.over.Done():
			return
		case <-ticker.C:
			s.beat()
		case <-started:
			started = nil
			deadline.Reset(s.clock.left())
		case <-deadline.C:
			s.look()
			deadline.Reset(s.clock.left())
		}
	}
}

func (s *session) beat() {
	b := &pb.Beat{Number: s.clock.beat()}
	_ = s.stream.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Beat{Beat: b}}) // Recv tells of a broken stream
}

// look ends the session if its deadline has passed. It is asked by everything
// that answers for the session, because a process that was stopped for longer
// than the session timeout runs other goroutines before its timers.
func (s *session) look() {
	if s.clock.left() > 0 {
		return
	}
	s.lose(fmt.Errorf("%w: %s for %v", recipes.ErrDeadline, s.clock.silence(), s.timeout))
}
