package server

import (
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// contacts return when the session was last in contact with ZooKeeper.
type contacts struct {
	last  func() time.Time // no later than the sending of the last answered request or ping
	known func() time.Time // the same for contacts that the leader is known to have received
}

func contactsOf(s recipes.Session) contacts {
	c := contacts{last: (&estimate{session: s}).contact}
	if reported, ok := s.(interface{ LastContact() time.Time }); ok {
		c.last = reported.LastContact
	}
	c.known = c.last
	if reported, ok := s.(interface{ KnownContact() time.Time }); ok {
		c.known = reported.KnownContact
	}
	return c
}

// estimate assumes that a connected session had its last contact two thirds of its timeout
// ago: see Config.Open.
type estimate struct {
	session recipes.Session
	mu      sync.Mutex
	last    time.Time
}

func (g *estimate) contact() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session.State() == recipes.Connected || g.last.IsZero() {
		g.last = time.Now().Add(-g.session.Timeout() * 2 / 3)
	}
	return g.last
}
