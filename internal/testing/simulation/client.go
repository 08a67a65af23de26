package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// client is a process that uses recipes. It opens a session, takes turns, and opens another
// session when that one is lost. After its death another process takes its place.
type client struct {
	name   string
	number int
	world  *World
	chance *stream

	stop context.Context // ends when the client must stop
	quit context.CancelFunc

	mu     sync.Mutex
	host   *host
	life   context.Context // ends with the process
	kill   context.CancelFunc
	lives  int
	paused time.Time // when the paused code continues
	turns  int       // completed ones
	since  int       // completed ones since the end of faults
	opened recipes.Client
}

func newClient(w *World, number int) *client {
	name := fmt.Sprintf("client %d", number)
	c := &client{name: name, number: number, world: w, chance: newStream(w.seed, name)}
	c.stop, c.quit = context.WithCancel(context.Background())
	c.start()
	return c
}

// start begins a new life on a new machine.
func (c *client) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lives++
	c.paused = time.Time{}
	c.host = newHost(c.world, fmt.Sprintf("%s.%d", c.name, c.lives))
	c.life, c.kill = context.WithCancel(c.stop)
}

func (c *client) current() (context.Context, *host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.life, c.host
}

// isDead reports whether the current process has died.
func (c *client) isDead() bool {
	life, h := c.current()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead || life.Err() != nil && c.stop.Err() == nil
}

// note adds an event to the trace, unless the process is dead.
func (c *client) note(format string, args ...any) {
	if !c.isDead() {
		c.world.trace.add(c.name, format, args...)
	}
}

// pause stops the code and the network of the process.
func (c *client) pause(d time.Duration) {
	c.mu.Lock()
	c.paused = time.Now().Add(d)
	h := c.host
	c.mu.Unlock()
	h.stall(both, d)
}

// heal ends the pause and the stalls of the process. Half-open connections stay half open.
func (c *client) heal() {
	c.mu.Lock()
	c.paused = time.Time{}
	h := c.host
	c.mu.Unlock()
	h.heal()
}

// die ends the process at once, without a close.
func (c *client) die() {
	_, h := c.current()
	h.die()
	c.mu.Lock()
	kill := c.kill
	c.mu.Unlock()
	kill()
}

// pauseStep is the interval at which a paused process checks whether it was healed.
const pauseStep = 100 * time.Millisecond

// step sleeps for d, and then until the process is no longer paused.
func (c *client) step(ctx context.Context, d time.Duration) error {
	if err := sleep(ctx, d); err != nil {
		return err
	}
	for {
		c.mu.Lock()
		wait := time.Until(c.paused)
		c.mu.Unlock()
		if wait <= 0 {
			return nil
		}
		if err := sleep(ctx, min(wait, pauseStep)); err != nil {
			return err
		}
	}
}

// run takes turns until the client must stop.
func (c *client) run(open opener, turn turn) {
	for c.stop.Err() == nil {
		life, h := c.current()
		s, err := open(life, h)
		if err != nil {
			if c.world.calm.Err() != nil && life.Err() == nil {
				c.note("cannot open a session: %v", err)
			}
			if c.isDead() {
				c.start()
			}
			continue
		}
		c.note("session %#x", s.ID())
		c.session(s)
		for s.Err() == nil && life.Err() == nil {
			c.take(life, turn, s)
		}
		c.session(nil)
		c.leave(s)
		if c.isDead() {
			_ = sleep(c.stop, c.chance.between(time.Second, 5*time.Second))
			c.start()
		}
	}
}

// opener opens a session from a host.
type opener func(ctx context.Context, h *host) (recipes.Client, error)

var sessionConfig = recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: sessionTimeout, MaxPacket: 8 << 10}

func openDirectly(ctx context.Context, h *host) (recipes.Client, error) {
	return zookeeper.Dialer(h.Dial).Open(ctx, sessionConfig)
}

func (c *client) session(s recipes.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened = s
}

// take takes one turn and counts it.
func (c *client) take(life context.Context, turn turn, s recipes.Client) {
	err := turn(life, c, s)
	switch {
	case err == nil:
		c.mu.Lock()
		c.turns++
		if c.world.calm.Err() != nil {
			c.since++
		}
		c.mu.Unlock()
	case err == errIdle:
	case life.Err() != nil, s.Err() != nil, expected(err):
		c.note("%v", err)
	default:
		c.world.fail(c.name, "unexpected error: %v", err)
	}
	_ = c.step(life, c.chance.about(200*time.Millisecond))
}

// expected reports whether a fault or a cancellation can have caused the error.
func expected(err error) bool {
	for _, e := range []error{
		context.Canceled, context.DeadlineExceeded, recipes.ErrSessionLost, recipes.ErrNotHeld,
		recipes.ErrUnknownOutcome, recipes.ErrContended, recipes.ErrUnavailable,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// leave closes the session before the process stops or opens another one.
func (c *client) leave(s recipes.Session) {
	if err := s.Err(); err != nil {
		c.note("session %#x: %v", s.ID(), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
	defer cancel()
	if c.isDead() {
		cancel() // a dead process does not wait
	}
	err := s.Close(ctx)
	c.note("closed session %#x: %v", s.ID(), err)
}
