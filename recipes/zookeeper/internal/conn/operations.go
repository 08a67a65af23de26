package conn

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Operation codes of the ZooKeeper protocol.
const (
	opCreate        = 1
	opDelete        = 2
	opExists        = 3
	opGetData       = 4
	opSetData       = 5
	opSync          = 9
	opPing          = 11
	opGetChildren2  = 12
	opCheck         = 13
	opMulti         = 14
	opCreate2       = 15
	opClose         = -11
	opAuth          = 100
	opSetWatches    = 101
	opSASL          = 102
	opRemoveWatches = 18
	opGetEphemerals = 103
	opError         = -1 // marks a refused operation in the results of a transaction
)

type opClass int

const (
	other opClass = iota // maintains the session: neither read nor write
	read
	write
)

var operations = map[int32]struct {
	name  string
	class opClass
}{
	opCreate:        {"create", write},
	opDelete:        {"delete", write},
	opExists:        {"exists", read},
	opGetData:       {"getData", read},
	opSetData:       {"setData", write},
	opSync:          {"sync", other},
	opPing:          {"ping", other},
	opGetChildren2:  {"getChildren2", read},
	opMulti:         {"multi", write},
	opCreate2:       {"create2", write},
	opClose:         {"closeSession", other},
	opAuth:          {"auth", other},
	opSetWatches:    {"setWatches", other},
	opSASL:          {"sasl", other},
	opRemoveWatches: {"removeWatches", other},
	opGetEphemerals: {"getEphemerals", read},
}

// Counters counts traffic of the connection and events of the session.
type Counters struct {
	requestBytes, responseBytes, watchEvents atomic.Int64

	Reconnects, Handoffs, Fallbacks, Asked atomic.Int64 // see recipes.Stats

	mu     sync.Mutex
	byKind map[int32]int64
}

func (c *Counters) request(op int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKind == nil {
		c.byKind = make(map[int32]int64)
	}
	c.byKind[op]++
}

// Snapshot returns the counts so far.
func (c *Counters) Snapshot() recipes.Stats {
	c.mu.Lock()
	byKind := maps.Clone(c.byKind)
	c.mu.Unlock()
	out := recipes.Stats{
		WatchEvents:   c.watchEvents.Load(),
		RequestBytes:  c.requestBytes.Load(),
		ResponseBytes: c.responseBytes.Load(),
		Reconnects:    c.Reconnects.Load(),
		Handoffs:      c.Handoffs.Load(),
		Fallbacks:     c.Fallbacks.Load(),
		Asked:         c.Asked.Load(),
		ByKind:        make(map[string]int64, len(byKind)),
	}
	for op, n := range byKind {
		kind := operations[op]
		out.ByKind[kind.name] += n
		switch {
		case op == opPing:
			out.Pings += n
		case kind.class == read:
			out.Reads += n
		case kind.class == write:
			out.Writes += n
		}
	}
	return out
}
