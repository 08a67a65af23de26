package simulation

import (
	"context"
	"fmt"
	"net"
	"slices"
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

func newWorld(seed uint64) *World {
	w := &World{
		seed:   seed,
		chance: newStream(seed, "world"),
		trace:  &trace{start: time.Now()},
		server: zkserver.New(zkserver.Config{}),
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
