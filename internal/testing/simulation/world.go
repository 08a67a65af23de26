package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// World is one run: its servers, network, clients and faults.
type World struct {
	seed   uint64
	chance *stream
	trace  *trace

	like      zkserver.Release
	server    *zkserver.Server
	followers []*zkserver.Follower
	ledger    ledger
	clients   []*client
	hosts     []*host
	lines     []string       // paths of wait queues
	outside   recipes.Client // the operator's session, which no fault of a client affects

	calm context.Context // ends with the faults

	mu         sync.Mutex
	violations []string
	faults     map[string]int
	forced     map[int64]bool // see force
}

func newWorld(seed uint64, like zkserver.Release) *World {
	w := &World{
		seed:   seed,
		chance: newStream(seed, "world"),
		trace:  &trace{start: time.Now()},
		like:   like,
		server: zkserver.New(zkserver.Config{Like: like, MinSessionTimeout: sessionTimeout, MaxSessionTimeout: 10 * sessionTimeout}),
		ledger: ledger{grants: make(map[string][]*grant), newest: make(map[string]recipes.Token)},
		faults: make(map[string]int),
		forced: make(map[int64]bool),
	}
	for range w.chance.below(3) {
		w.followers = append(w.followers, w.server.Follower())
	}
	return w
}

// servers returns the servers that clients can connect to.
func (w *World) servers() []func(net.Conn) {
	list := []func(net.Conn){w.server.ServeConn}
	for _, f := range w.followers {
		list = append(list, f.ServeConn)
	}
	return list
}

// spares reports whether no connection of a session may end: that of the operator on a Keeper, which
// cannot resume it.
func (w *World) spares(session int64) bool {
	return w.like.Keeper() && w.outside != nil && w.outside.ID() == session
}

// fail records a violation.
func (w *World) fail(who, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	w.trace.add(who, "VIOLATION: %s", what)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, who+": "+what)
}

// fault records a fault.
func (w *World) fault(who, kind, format string, args ...any) {
	w.trace.add(who, "fault: %s: %s", kind, fmt.Sprintf(format, args...))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[kind]++
}

// force records that an operator has ended a session or deleted one of its znodes. No clock can
// foresee that.
func (w *World) force(session int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forced[session] = true
}

func (w *World) wasForced(session int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.forced[session]
}

// exists reports whether the leader has a znode.
func (w *World) exists(path string) bool {
	return slices.ContainsFunc(w.server.Tree(), func(n zkserver.Node) bool { return n.Path == path })
}

// grant is a grant that a client has received.
type grant struct {
	client  *client
	session recipes.Client
	path    string
	recipes.Grant

	shared    bool      // it excludes only grants that are not shared
	journaled bool      // its path has a journal
	entries   int       // written to the journal
	until     time.Time // what ValidUntil has returned last; under ledger.mu
}

// active reports whether the client may still act on the grant: it is alive, and its library has
// reported neither a release nor a loss.
func (g *grant) active() bool { return !g.client.isDead() && g.Err() == nil }

// sample calls ValidUntil.
func (g *grant) sample() {
	if until := g.ValidUntil(); !until.IsZero() {
		g.until = until
	}
}

// valid reports whether the grant was lost before the time that ValidUntil returned, because its
// session expired. Other sessions end earlier: the application or the plugin closes them.
func (g *grant) valid() bool {
	lost := g.Err()
	return !g.client.isDead() && (errors.Is(lost, recipes.ErrExpired) || errors.Is(lost, recipes.ErrDeadline)) && time.Now().Before(g.until)
}

// ledger records the holders by the virtual clock, which all clients share. The journal records
// them in the server's order.
type ledger struct {
	mu     sync.Mutex
	grants map[string][]*grant
	newest map[string]recipes.Token
}

// enter records a grant and checks it. Its znode must exist, and its token must be the largest. No
// other client may still act on a grant that it excludes. permits is the number of grants that may
// be held at a time.
//
// A grant whose session expired excludes others until it is no longer valid.
func (l *ledger) enter(g *grant, permits int) {
	w, who := g.client.world, g.client.name
	g.client.note("granted %s, token %#x", g.Znode(), int64(g.Token()))
	if g.Err() != nil || g.client.isDead() || w.wasForced(g.session.ID()) {
		return // the library has reported the loss, or no clock could have foreseen it
	}
	if !w.exists(g.Znode()) {
		w.fail(who, "granted %s, which does not exist", g.Znode())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if permits == 1 && !g.shared {
		if last := l.newest[g.path]; g.Token() <= last {
			w.fail(who, "granted token %#x after token %#x", int64(g.Token()), int64(last))
		}
	}
	l.newest[g.path] = max(l.newest[g.path], g.Token())
	g.sample()
	l.grants[g.path] = slices.DeleteFunc(l.grants[g.path], func(other *grant) bool { return !other.active() && !other.valid() })
	beside := 0
	for _, other := range l.grants[g.path] {
		if g.shared && other.shared || w.wasForced(other.session.ID()) {
			continue
		}
		if !other.active() && permits == 1 {
			w.fail(who, "granted %s while the lost %s is valid for another %v", g.Znode(), other.Znode(), time.Until(other.until))
		}
		if beside++; beside >= permits && other.active() {
			w.fail(who, "granted %s while %s still acts on %s", g.Znode(), other.client.name, other.Znode())
		}
	}
	l.grants[g.path] = append(l.grants[g.path], g)
}

// leave records that the client no longer acts on a grant.
func (l *ledger) leave(g *grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants[g.path] = slices.DeleteFunc(l.grants[g.path], func(other *grant) bool { return other == g })
}

// share records that a grant is shared from now on.
func (l *ledger) share(g *grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.shared = true
}

// journalOf returns the path of the journal of grants at p. Holders write to it under their grants.
// Its entries are znodes that are never deleted, so their czxids show the order of the holders.
func journalOf(p string) string { return "/journal" + p }

// entry returns the path of the next journal entry of a grant.
func (g *grant) entry() string {
	l := &g.client.world.ledger
	l.mu.Lock()
	g.sample()
	l.mu.Unlock()
	g.entries++
	mode := "alone"
	if g.shared {
		mode = "shared"
	}
	if !g.journaled {
		return fmt.Sprintf("/journal/%016x-%d", int64(g.Token()), g.entries)
	}
	return fmt.Sprintf("%s/%016x-%d-%s", journalOf(g.path), int64(g.Token()), g.entries, mode)
}

// checkJournal checks that grants that exclude each other wrote one after the other: no grant
// writes after one with a larger token that excludes it.
func (w *World) checkJournal(p string) {
	var entries []zkserver.Node
	for _, n := range w.server.Tree() {
		if path.Dir(n.Path) == journalOf(p) {
			entries = append(entries, n)
		}
	}
	slices.SortFunc(entries, func(a, b zkserver.Node) int { return cmp.Compare(a.Stat.Czxid, b.Stat.Czxid) })
	var any, alone int64 // the largest tokens that have written
	for _, n := range entries {
		hex, rest, _ := strings.Cut(path.Base(n.Path), "-")
		token, _ := strconv.ParseInt(hex, 16, 64)
		shared := strings.HasSuffix(rest, "shared")
		last := any
		if shared {
			last = alone
		}
		if token < last {
			w.fail("journal", "%s was written after the holder of token %#x had written", n.Path, last)
		}
		any = max(any, token)
		if !shared {
			alone = max(alone, token)
		}
	}
}
