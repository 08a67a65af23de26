package server

import (
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// contactOf returns a function that tells when the session's last request or
// ping that ZooKeeper has answered was sent, or a time before that.
func contactOf(s recipes.Session) func() time.Time {
	if c, ok := s.(interface{ LastContact() time.Time }); ok {
		return c.LastContact
	}
	return (&guess{session: s}).contact
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
