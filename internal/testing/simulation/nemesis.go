package simulation

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// disturbClient injects faults of one client and its network, until the faults end.
func (w *World) disturbClient(c *client) {
	s := newStream(w.seed, c.name+" faults")
	mean := pick(s, 2*time.Second, 5*time.Second, 15*time.Second)
	for sleep(w.calm, s.about(mean)) == nil {
		_, h := c.current()
		length := s.about(pick(s, 500*time.Millisecond, sessionTimeout/2, 2*sessionTimeout))
		which := pick(s, both, requests, replies)
		switch s.below(8) {
		case 0, 1:
			w.fault(c.name, "partition", "%s for %v", which, length)
			h.stall(which, length)
		case 2:
			w.fault(c.name, "half open", "%s", which)
			h.hang(which)
		case 3:
			w.fault(c.name, "reset", "")
			h.reset()
		case 4, 5:
			w.fault(c.name, "pause", "for %v", length)
			c.pause(length)
		case 6:
			w.fault(c.name, "death", "")
			c.die()
		case 7:
			c.expire()
		}
	}
}

// disturbPlugin injects faults between an application and its plugin, until the faults end.
func (w *World) disturbPlugin(c *client) {
	s := newStream(w.seed, c.name+" plugin faults")
	for sleep(w.calm, s.about(10*time.Second)) == nil {
		_, h := c.current()
		if length := s.about(sessionTimeout / 2); s.chance(70) {
			w.fault(c.name, "plugin stalls", "for %v", length)
			h.stallHop(length)
		} else {
			w.fault(c.name, "plugin connection ends", "")
			h.resetHop()
		}
	}
}

// expire ends the client's session at the server, as an operator can.
func (c *client) expire() {
	c.mu.Lock()
	s := c.opened
	c.mu.Unlock()
	if s != nil {
		c.world.fault(c.name, "expiry", "session %#x", s.ID())
		c.world.force(s.ID())
		c.world.server.ExpireSession(s.ID())
	}
}

// longestServerFault bounds a fault of the servers, so that the operator's session survives it. The
// timeout of that session is twice as long, and its last ping may be a third of that old.
const longestServerFault = 5 * sessionTimeout

// disturbServers injects faults of the servers, until the faults end.
func (w *World) disturbServers() {
	s := newStream(w.seed, "server faults")
	mean := pick(s, 3*time.Second, 8*time.Second, 25*time.Second)
	for sleep(w.calm, s.about(mean)) == nil {
		length := min(longestServerFault, s.about(pick(s, 300*time.Millisecond, sessionTimeout/4, sessionTimeout)))
		switch s.below(5) {
		case 3:
			w.fault("servers", "reaping", "empty containers are deleted")
			w.server.RunContainerCheck()
		case 4:
			w.deleteAny(s)
		case 0:
			w.fault("servers", "restart", "for %v", length)
			w.server.RefuseConnections(true)
			w.closeConnections()
			_ = sleep(w.calm, length)
			w.server.RefuseConnections(false)
		case 1:
			w.fault("servers", "freeze", "for %v", length)
			w.server.Freeze(true)
			_ = sleep(w.calm, length)
			w.server.Freeze(false)
		case 2:
			if len(w.followers) > 0 {
				w.failFollower(pick(s, w.followers...), s, length)
			}
		}
	}
}

// closeConnections closes all connections but those of spared sessions.
func (w *World) closeConnections() {
	if !w.like.Keeper() {
		w.server.CloseAllConnections()
		return
	}
	for _, id := range w.server.Sessions() {
		if !w.spares(id) {
			w.server.CloseConnection(id)
		}
	}
}

// deleteAny deletes the znode of a random contender, as an operator can.
func (w *World) deleteAny(s *stream) {
	var contenders []zkserver.Node
	for _, n := range w.server.Tree() {
		if n.Stat.EphemeralOwner != 0 && slices.Contains(w.lines, path.Dir(n.Path)) {
			contenders = append(contenders, n)
		}
	}
	if len(contenders) == 0 {
		return
	}
	n := pick(s, contenders...)
	w.fault("operator", "deletion", "%s", n.Path)
	w.force(n.Stat.EphemeralOwner)
	b, err := w.outside.Barrier(n.Path)
	if err == nil {
		err = b.Remove(context.Background())
	}
	w.trace.add("operator", "deleted %s: %v", n.Path, err)
}

// failFollower crashes a follower, or cuts it off from the leader for a while. Then the follower
// receives the missed transactions, some of them one by one.
func (w *World) failFollower(f *zkserver.Follower, s *stream, length time.Duration) {
	if s.chance(30) {
		w.fault("follower", "crash", "")
		f.Crash()
		return
	}
	if s.chance(50) {
		w.fault("follower", "lag", "reads show what was %v ago at the end", length)
		f.CutOff()
		f.Lag()
		_ = sleep(w.calm, length)
		f.Heal()
		w.trace.add("follower", "healed")
		return
	}
	if s.chance(50) { // long enough for its clients' sessions to expire
		length = min(longestServerFault, length+sessionTimeout+s.about(sessionTimeout))
	}
	w.fault("follower", "cut off", "for %v", length)
	f.CutOff()
	_ = sleep(w.calm, length)
	for s.chance(90) && f.Deliver() {
		_ = sleep(w.calm, s.about(100*time.Millisecond))
	}
	f.Heal()
	w.trace.add("follower", "healed")
}

// requestFaults chooses the fault of each request. The requests of one session for one znode have
// their own stream, because one event can wake several of its goroutines, which send in any order.
type requestFaults struct {
	world   *World
	percent int

	mu      sync.Mutex
	streams map[string]*stream
}

func (r *requestFaults) decide(q zkserver.Request) zkserver.Fault {
	if r.world.calm.Err() != nil || r.world.spares(q.SessionID) {
		return zkserver.Fault{}
	}
	s := r.of(fmt.Sprintf("%#x %v %s", q.SessionID, q.Op, q.Path))
	if !s.chance(r.percent) {
		return zkserver.Fault{}
	}
	note := func(kind string) {
		r.world.fault("server", kind, "%v %s of session %#x", q.Op, q.Path, q.SessionID)
	}
	switch s.below(5) {
	case 0:
		note("crash before commit")
		return zkserver.Fault{CloseBefore: true}
	case 1:
		note("crash before reply")
		return zkserver.Fault{DropReply: true}
	case 2:
		note("crash after reply")
		return zkserver.Fault{CloseAfter: true}
	case 3:
		note("slow commit")
		return zkserver.Fault{Hold: after(s.about(200 * time.Millisecond))}
	default:
		note("slow reply")
		return zkserver.Fault{HoldReply: after(s.about(200 * time.Millisecond))}
	}
}

func (r *requestFaults) of(requests string) *stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.streams[requests]
	if s == nil {
		s = newStream(r.world.seed, requests)
		r.streams[requests] = s
	}
	return s
}

func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}
