package simulation

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// host is a machine, with its network to the servers.
type host struct {
	name   string
	world  *World
	chance *stream

	mu      sync.Mutex
	conns   map[*conn]struct{}
	closed  []*conn // closed by the client; their messages may still arrive
	dialled int
	hops    map[*conn]struct{} // connections to plugins
	hopped  int
	cut     time.Time // no message passes until then
	dead    bool
	where   []func(net.Conn) // the servers that it can connect to
}

func newHost(w *World, name string) *host {
	h := &host{name: name, world: w, chance: newStream(w.seed, name+" network"), conns: make(map[*conn]struct{}), hops: make(map[*conn]struct{}), where: w.servers()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts = append(w.hosts, h)
	return h
}

// Dial connects to one of the servers. While the host is cut off it waits, at most until ctx
// ends.
func (h *host) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := sleep(ctx, h.chance.about(time.Millisecond)); err != nil {
		return nil, err
	}
	h.mu.Lock()
	cut := time.Until(h.cut)
	h.mu.Unlock()
	if cut > 0 {
		if err := sleep(ctx, cut); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return nil, syscall.ENETDOWN
	}
	h.dialled++
	serve := pick(h.chance, h.where...)
	if h.name == operatorName && h.world.like.Keeper() {
		serve = h.where[0] // no follower crashes under it
	}
	near, far := newConns(h.latency("there"), h.latency("back"))
	near.gone = func() { h.forget(near) }
	h.conns[near] = struct{}{}
	go serve(far)
	return near, nil
}

// latency returns the delays of one direction of a new connection. Connections are fast or slow,
// and each has some slow messages.
func (h *host) latency(direction string) func() time.Duration {
	s := newStream(h.world.seed, fmt.Sprintf("%s connection %d %s", h.name, h.dialled, direction))
	base := s.between(50*time.Microsecond, pick(s, time.Millisecond, 5*time.Millisecond, 30*time.Millisecond))
	slow := s.below(4)
	if h.name == operatorName { // if the reply that opens it were lost, the session would outlive the run
		slow = 0
	}
	return func() time.Duration {
		d := base + s.about(base/4)
		if s.chance(slow) {
			d += s.about(20 * base)
		}
		return d
	}
}

func (h *host) forget(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c)
	h.closed = append(h.closed, c)
}

// each calls f for the open connections.
func (h *host) each(f func(*conn)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		f(c)
	}
}

// direction is the part of a network that a fault affects.
type direction string

const (
	both     direction = "both ways"
	requests direction = "requests"
	replies  direction = "replies"
)

// stall delays all messages for d. Messages sent in that time arrive afterwards.
func (h *host) stall(which direction, d time.Duration) {
	until := time.Now().Add(d)
	if which == both {
		h.mu.Lock()
		h.cut = until
		h.mu.Unlock()
	}
	h.each(func(c *conn) {
		if which != replies {
			c.out.stall(until)
		}
		if which != requests {
			c.in.stall(until)
		}
	})
}

// heal ends all stalls.
func (h *host) heal() {
	h.mu.Lock()
	h.cut = time.Time{}
	h.mu.Unlock()
	pass := func(c *conn) {
		c.out.unstall()
		c.in.unstall()
	}
	h.each(pass)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.closed { // otherwise a request to open a session could arrive after the run
		pass(c)
	}
	for c := range h.hops {
		pass(c)
	}
}

// hang makes the open connections half open: they deliver nothing more. New connections are not
// affected.
func (h *host) hang(which direction) {
	h.each(func(c *conn) {
		if which != replies {
			c.out.hang()
		}
		if which != requests {
			c.in.hang()
		}
	})
}

// reset breaks the open connections and drops the bytes under way. The client's writes fail at
// once. Both ends read the end of the connection after the delay of a message.
func (h *host) reset() {
	h.each(func(c *conn) {
		c.in.discard(0)
		c.out.discard(0)
		c.out.refuse(syscall.ECONNRESET)
	})
}

// die disconnects the host for ever, without closing its connections.
func (h *host) die() {
	h.mu.Lock()
	h.dead = true
	for _, c := range h.closed {
		c.in.hang()
		c.out.hang()
	}
	h.mu.Unlock()
	h.hang(both)
}

// close closes the connections that are still open.
func (h *host) close() {
	var open []*conn
	h.each(func(c *conn) { open = append(open, c) })
	for _, c := range open {
		_ = c.Close()
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
