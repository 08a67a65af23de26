package server

import (
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// contacts tell when the session was last in contact with ZooKeeper.
type contacts struct {
	last  func() time.Time // when the last request or ping was sent that was answered, or before
	known func() time.Time // likewise, of those that the leader is known to have heard of
}

func contactsOf(s recipes.Session) contacts {
	c := contacts{last: (&guess{session: s}).contact}
	if told, ok := s.(interface{ LastContact() time.Time }); ok {
		c.last = told.LastContact
	}
	c.known = c.last
	if told, ok := s.(interface{ KnownContact() time.Time }); ok {
		c.known = told.KnownContact
	}
	return c
}

// guess assumes the longest silence of a session that calls itself connected.
type guess struct {
	session recipes.Session
	mu      sync.Mutex
	last    time.Time
}

func (g *guess) contact() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session.State() == recipes.Connected || g.last.IsZero() {
		g.last = time.Now().Add(-g.session.Timeout() * 2 / 3)
	}
	return g.last
}
