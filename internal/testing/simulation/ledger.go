package simulation

import (
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// grant is a grant that a client was given.
type grant struct {
	client  *client
	session recipes.Client
	path    string
	recipes.Grant

	shared    bool // it excludes only those that are not
	journaled bool // there is a journal of its path
	entries   int  // in the journal
}

// believed reports whether the client may act on it: it has not given it back, and
// its library knows nothing against it.
func (g *grant) believed() bool { return !g.client.isDead() && g.Err() == nil }

// ledger is who holds what, by the clock that all share. The order of the server
// is in its znodes: see journal.
type ledger struct {
	mu     sync.Mutex
	grants map[string][]*grant
	newest map[string]recipes.Token
}

// enter notes a grant and checks what is promised of it: no other grant that
// it excludes is still believed, its token is the largest, its session lives,
// and its znode is there. Permits is how many grants may stand at once.
func (l *ledger) enter(g *grant, permits int) {
	w, who := g.client.world, g.client.name
	g.client.note("granted %s, token %#x", g.Znode(), int64(g.Token()))
	if g.Err() != nil || g.client.isDead() || w.wasForced(g.session.ID()) {
		return // it says so, or no clock could have told
	}
	if !w.exists(g.Znode()) {
		w.fail(who, "granted %s, which is not there", g.Znode())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if permits == 1 && !g.shared {
		if last := l.newest[g.path]; g.Token() <= last {
			w.fail(who, "granted token %#x after token %#x", int64(g.Token()), int64(last))
		}
	}
	l.newest[g.path] = max(l.newest[g.path], g.Token())
	l.grants[g.path] = slices.DeleteFunc(l.grants[g.path], func(other *grant) bool { return !other.believed() })
	beside := 0
	for _, other := range l.grants[g.path] {
		if g.shared && other.shared || w.wasForced(other.session.ID()) {
			continue
		}
		if beside++; beside >= permits {
			w.fail(who, "granted %s while %s still believes in %s", g.Znode(), other.client.name, other.Znode())
		}
	}
	l.grants[g.path] = append(l.grants[g.path], g)
}

// leave notes that the client stops acting on a grant.
func (l *ledger) leave(g *grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants[g.path] = slices.DeleteFunc(l.grants[g.path], func(other *grant) bool { return other == g })
}

// share notes that a grant excludes only those from now on that are not shared.
func (l *ledger) share(g *grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.shared = true
}
