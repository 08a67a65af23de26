package link

import "github.com/zkrecipes/zkrecipes/recipes"

// Itself returns the session, even if a stub embeds it.
func (s *Session) Itself() *Session { return s }

func itself(s recipes.Client) *Session { return s.(interface{ Itself() *Session }).Itself() }

// Holding reports whether a session's clock counts as for one that holds something.
func Holding(s recipes.Client) bool {
	c := itself(s).clock
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holding
}

// Kept returns how many grants and contenders a session remembers.
func Kept(s recipes.Client) (grants, owned, waiters int) {
	c := itself(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held), len(c.owned), len(c.pending)
}

// Serving returns how many sessions read from the plugin.
func (p *Plugin) Serving() int { return len(p.serving()) }
