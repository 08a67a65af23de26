package session

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Operation codes of the ZooKeeper protocol.
const (
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opGetACL          = 6
	opSetACL          = 7
	opGetChildren     = 8
	opSync            = 9
	opPing            = 11
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opCreateContainer = 19
	opClose           = -11
	opAuth            = 100
	opSetWatches      = 101
	opRemoveWatches   = 18
	opGetEphemerals   = 103
	opError           = -1 // among the results of a transaction

	codeUnimplemented = -6
	codeOversized     = -117 // errOversized on the wire
)

type opClass int

const (
	other opClass = iota // part of keeping the session: neither read nor write
	read
	write
)

var operations = map[int32]struct {
	name  string
	class opClass
}{
	opCreate:          {"create", write},
	opDelete:          {"delete", write},
	opExists:          {"exists", read},
	opGetData:         {"getData", read},
	opSetData:         {"setData", write},
	opGetACL:          {"getACL", read},
	opSetACL:          {"setACL", write},
	opGetChildren:     {"getChildren", read},
	opSync:            {"sync", other},
	opPing:            {"ping", other},
	opGetChildren2:    {"getChildren2", read},
	opMulti:           {"multi", write},
	opCreate2:         {"create2", write},
	opCreateContainer: {"createContainer", write},
	opClose:           {"closeSession", other},
	opAuth:            {"auth", other},
	opSetWatches:      {"setWatches", other},
	opRemoveWatches:   {"removeWatches", other},
	opGetEphemerals:   {"getEphemerals", read},
}

// counters counts what the wire carries.
type counters struct {
	requestBytes, responseBytes, watchEvents, reconnects atomic.Int64
	handoffs, fallbacks, asked                           atomic.Int64

	mu     sync.Mutex
	byKind map[int32]int64
}

func (c *counters) request(op int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKind == nil {
		c.byKind = make(map[int32]int64)
	}
	c.byKind[op]++
}

func (c *counters) snapshot() recipes.Stats {
	c.mu.Lock()
	byKind := maps.Clone(c.byKind)
	c.mu.Unlock()
	out := recipes.Stats{
		WatchEvents:   c.watchEvents.Load(),
		RequestBytes:  c.requestBytes.Load(),
		ResponseBytes: c.responseBytes.Load(),
		Reconnects:    c.reconnects.Load(),
		Handoffs:      c.handoffs.Load(),
		Fallbacks:     c.fallbacks.Load(),
		Asked:         c.asked.Load(),
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

// CountHandoff and CountFallback count for recipes.Stats.
func (s *Session) CountHandoff()  { s.wire.counters.handoffs.Add(1) }
func (s *Session) CountFallback() { s.wire.counters.fallbacks.Add(1) }
