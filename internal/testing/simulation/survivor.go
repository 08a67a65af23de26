package simulation

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/supervised"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// survivor is a session that outlives the plugins that serve it.
type survivor struct {
	recipes.Client
	plugins *supervised.Host
}

// openSurvivor opens a session through a host of its own. A plugin takes some time to start.
func openSurvivor(ctx context.Context, h *host) (recipes.Client, error) {
	chance := newStream(h.world.seed, h.name+" plugins")
	plugins := supervised.New(func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := sleep(ctx, chance.about(100*time.Millisecond)); err != nil {
			return nil, err
		}
		return h.Dial(ctx, network, address)
	})
	s, err := plugins.Open(ctx, sessionConfig)
	if err != nil {
		plugins.Close()
		return nil, err
	}
	return survivor{s, plugins}, nil
}

func (s survivor) Close(ctx context.Context) error {
	defer s.plugins.Close()
	return s.Client.Close(ctx)
}

// surviving is a scenario whose plugins die.
func surviving(sc scenario) scenario {
	sc.name += " whose plugins die"
	sc.open, sc.dies = openSurvivor, true
	return sc
}

// twice makes a client take two turns at a time, for half of its turns, so that a plugin resumes
// several contenders.
func twice(begin func(*World) game) func(*World) game {
	return func(w *World) game {
		g := begin(w)
		one := g.turn
		g.turn = func(ctx context.Context, c *client, s recipes.Client) error {
			var second error
			var both sync.WaitGroup
			if c.chance.chance(50) {
				both.Go(func() { second = one(ctx, c, s) })
			}
			first := one(ctx, c, s)
			both.Wait()
			if second != nil && !expected(second) {
				return second
			}
			return first
		}
		return g
	}
}

// detachTimeout bounds the detaching of a plugin from its session.
const detachTimeout = time.Second

// killPlugins has the plugins of one client die or be replaced, until the faults end. Replies may be
// on their way.
func (w *World) killPlugins(c *client) {
	s := newStream(w.seed, c.name+" plugin deaths")
	for sleep(w.calm, s.about(4*time.Second)) == nil {
		c.mu.Lock()
		v, ok := c.opened.(survivor)
		c.mu.Unlock()
		if !ok {
			continue
		}
		if s.chance(40) {
			_, h := c.current()
			length := s.about(sessionTimeout / 8)
			h.stall(replies, length)
			_ = sleep(w.calm, length/2)
		}
		if s.chance(40) {
			w.fault(c.name, "plugin is replaced", "session %#x", v.ID())
			v.plugins.Replace(detachTimeout)
		} else {
			w.fault(c.name, "plugin dies", "session %#x", v.ID())
			v.plugins.Kill()
		}
	}
}
