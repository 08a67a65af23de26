package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Limits are what limits the length of a line: settings of ZooKeeper, and the capacity of
// the machines. For machines 0 means unknown.
type Limits struct {
	MaxListing     int // SessionConfig.MaxListing, in bytes; ZooKeeper does not bound its replies
	MaxClientCnxns int // connections from one address; 0 means no limit
	NameLength     int // bytes of a contender's name

	Descriptors int           // open files of one process of contenders
	Memory      int           // of the contenders' machine, in bytes
	Heap        int           // of a server, in bytes
	Network     float64       // bytes a second
	Processors  int           // of a server
	Fsync       time.Duration // the time of one fsync
	Timeout     time.Duration // of sessions
}

// Defaults for the machines: systemd's LimitNOFILE, and a network of 1 Gbit/s.
const (
	systemd = 524_288
	gigabit = 125e6
)

// DefaultLimits are ZooKeeper's own, with the names of this project's locks:
// lock-<sequence>, with the prefix _c_<guid>- except for handoff, which derives names from
// numbers.
func DefaultLimits(s recipes.Strategy) Limits {
	l := Limits{
		MaxListing: 64 << 20, MaxClientCnxns: 60, NameLength: len("lock-") + 10,
		Descriptors: systemd, Network: gigabit, Timeout: 30 * time.Second,
	}
	if s != recipes.Handoff {
		l.NameLength += len("_c_") + 36 + len("-")
	}
	return l
}

const (
	perName     = 4    // the length before each name in a listing
	perResponse = 96   // header and Stat
	perWatch    = 200  // a guess at a watch in the server: path, two sets' entries
	perZnode    = 300  // a guess at a znode in the server's memory
	perSnapshot = 90   // Stat, ACL and lengths of a znode in a snapshot
	watchMemory = 64e6 // bytes of watches and znodes; Check warns of more
)

// Listing is the size of a listing of n contenders, in bytes.
func (l Limits) Listing(n int) int { return perResponse + n*(perName+l.NameLength) }

// Check returns a warning for each setting that is too low for n contenders, or nearly so:
// a sentence with the figure, the setting and what to do.
func (l Limits) Check(n int) (warnings []string) {
	say := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	most := (l.MaxListing - perResponse) / (perName + l.NameLength)
	switch listing := l.Listing(n); {
	case listing > l.MaxListing:
		say("a listing of %s has %d bytes, more than max_listing (%d): at most %d fit; raise it", english.Count(n, "contender"), listing, l.MaxListing, most)
	case listing > l.MaxListing/2:
		say("a listing of %s has %d bytes, more than half of max_listing (%d): at most %d fit", english.Count(n, "contender"), listing, l.MaxListing, most)
	}
	if l.MaxClientCnxns > 0 && n > l.MaxClientCnxns {
		say("%d sessions from one address are more than maxClientCnxns (%d); raise it, or spread them", n, l.MaxClientCnxns)
	}
	if memory := n * (perWatch + perZnode + 2*l.NameLength); float64(memory) > watchMemory {
		say("watches and znodes of %s take some %d MB of each server's heap", english.Count(n, "contender"), memory/1e6)
	}
	if snapshot := n * (perSnapshot + l.NameLength); float64(snapshot) > watchMemory {
		say("the line adds some %d MB to each snapshot", snapshot/1e6)
	}
	return warnings
}

// End is a resource that limits how many contenders a line can have.
type End struct {
	Resource string
	At       int    // the first number of contenders that is too many
	Why      string // a clause with the figures
}

const (
	perConnection = 5000 // a guess at a session and its connection in a server's heap, in bytes
	keepAlive     = 3    // keep-alives that a session sends in its timeout
	perKeepAlive  = 50e3 // a guess at the processor time of one keep-alive in a server, in ns
	saturated     = 0.5  // share of a resource at which it limits a line
)

// Ends returns the resources that limit a growing line, the first limit first.
func (m *Model) Ends(l Limits) []End {
	ends := []End{m.listing(l)}
	if l.Descriptors > 0 {
		ends = append(ends, End{"generator's descriptors", l.Descriptors + 1,
			fmt.Sprintf("a session takes one, and a process may have %d", l.Descriptors)})
	}
	if l.Heap > 0 {
		each := perConnection + perWatch + perZnode + 2*l.NameLength
		ends = append(ends, End{"server's heap", l.Heap/each + 1,
			fmt.Sprintf("of %d MB, of which a contender takes some %d kB (an estimate)", l.Heap/1e6, each/1000)})
	}
	if l.Memory > 0 && m.use.session > 0 {
		ends = append(ends, End{"generator's memory", int(float64(l.Memory)/m.use.session) + 1,
			fmt.Sprintf("a session took %.0f kB of %.1f GB", m.use.session/1000, float64(l.Memory)/1e9)})
	}
	if l.Timeout > 0 {
		most := float64(l.Timeout) / keepAlive / perKeepAlive * float64(max(1, l.Processors))
		ends = append(ends, End{"server's processor", int(saturated*most) + 1,
			fmt.Sprintf("keep-alives alone, %d in a timeout of %v, take half of it (an estimate)", keepAlive, l.Timeout)})
	}
	if at := m.networkEnds(l); at <= Farthest {
		ends = append(ends, End{"network", at, fmt.Sprintf("a handoff's answers take half of its time at %.3g MB/s", l.Network/1e6)})
	}
	slices.SortStableFunc(ends, func(a, b End) int { return cmp.Compare(a.At, b.At) })
	return ends
}

// listing is the number of contenders whose listing no longer fits into a reply.
func (m *Model) listing(l Limits) End {
	e := End{"max_listing", (l.MaxListing-perResponse)/(perName+l.NameLength) + 1,
		fmt.Sprintf("a listing of more names has over %d bytes, and each handoff needs one", l.MaxListing)}
	if m.Strategy == recipes.Handoff {
		e.Why = fmt.Sprintf("a listing of more names has over %d bytes: waiters by handoff need none, but Contenders fails", l.MaxListing)
	}
	return e
}

// networkEnds is the smallest number of contenders at which a handoff's replies take half of
// its time.
func (m *Model) networkEnds(l Limits) int {
	if l.Network == 0 {
		return Farthest + 1
	}
	return 1 + largest(Farthest, func(n int) bool {
		bytes, err := m.At(unit.Bytes, n)
		mean, err2 := m.At(unit.Handoffs, n)
		return err != nil || err2 != nil || bytes.Value/l.Network*mean.Value < saturated
	})
}

type use struct {
	client, server *service        // processor time of a handoff; nil if not known
	session        float64         // resident bytes of the generator for each session; 0 if not known
	alone          []record.Record // records of one contender
}

// learn learns from the records of each level. It ignores the generator's processor time and
// memory in records with a delay, because they contain the relay's.
func (u *use) learn(m *Model, byLevel map[int][]record.Record) {
	u.client = m.used(byLevel, func(r record.Record) float64 {
		if r.Delay > 0 {
			return 0
		}
		return float64(r.Client.CPU) / float64(r.Operations)
	})
	u.server = m.used(byLevel, func(r record.Record) float64 {
		v, _ := r.Metric(unit.ServerCPU)
		return v
	})
	for _, largest := range slices.Backward(m.Levels) {
		var sessions []float64
		for _, r := range byLevel[largest] {
			if r.Delay == 0 {
				sessions = append(sessions, float64(r.Memory.RSS)/float64(largest))
			}
		}
		if len(sessions) > 0 {
			u.session = median(sessions)
			return
		}
	}
}

// used fits a service to the levels that have a positive value. It returns nil if there are
// too few.
func (m *Model) used(byLevel map[int][]record.Record, of func(record.Record) float64) *service {
	var levels []int
	var values [][]float64
	for _, n := range m.Levels {
		var positive []float64
		for _, r := range byLevel[n] {
			if v := of(r); v > 0 {
				positive = append(positive, v)
			}
		}
		if len(positive) > 0 {
			levels, values = append(levels, n), append(values, positive)
		}
	}
	if len(levels) < firstLevels {
		return nil
	}
	return newServiceOf(m.Strategy, levels, values)
}

// Share is the part of a handoff's mean time for which a resource is busy. It is more than 1
// if a handoff uses several of them at once.
type Share struct {
	Resource string
	Part     float64
}

// Shares returns the resources that a handoff in a line of n keeps busy, the busiest first.
// The rest of its time is waiting: for round trips and for other processes. l is the capacity
// of the resources.
func (m *Model) Shares(n int, l Limits) (shares []Share) {
	mean, err := m.At(unit.Handoffs, n)
	if err != nil {
		return nil
	}
	period := 1e9 / mean.Value
	add := func(resource string, ns float64) {
		shares = append(shares, Share{resource, ns / period})
	}
	processors := float64(max(1, l.Processors))
	if m.use.server != nil {
		add("server's processor", m.use.server.at("", float64(n)).Value/processors)
	}
	if m.use.client != nil {
		add("generator's processor", m.use.client.at("", float64(n)).Value/processors)
	}
	if l.Fsync > 0 {
		add("fsync", float64(l.Fsync))
	}
	if e, err := m.At(unit.Bytes, n); err == nil && l.Network > 0 {
		add("network", 1e9*e.Value/l.Network)
	}
	slices.SortStableFunc(shares, func(a, b Share) int { return cmp.Compare(b.Part, a.Part) })
	return shares
}
