package plan

import (
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Limits are what bounds a line's length: settings of ZooKeeper, and what the machines
// can do. Of the machines 0 is not known.
type Limits struct {
	MaxBuffer      int // jute.maxbuffer, in bytes
	MaxClientCnxns int // connections from one address; 0 is no limit
	NameLength     int // bytes of a contender's name

	Descriptors int           // open files of one process of contenders
	Memory      int           // of the machine with the contenders, in bytes
	Heap        int           // of a server, in bytes
	Network     float64       // bytes a second
	Processors  int           // of a server
	Fsync       time.Duration // what one takes
	Timeout     time.Duration // of sessions
}

// What is assumed of the machines: systemd's default for LimitNOFILE, and a network of
// 1 Gbit/s.
const (
	systemd = 524_288
	gigabit = 125e6
)

// DefaultLimits are ZooKeeper's, with the names of this project's locks:
// lock-<sequence>, after _c_<guid>- where the strategy does not need to know them.
func DefaultLimits(s recipes.Strategy) Limits {
	l := Limits{
		MaxBuffer: 0xfffff, MaxClientCnxns: 60, NameLength: len("lock-") + 10,
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
	watchMemory = 64e6 // from where on watches and znodes are worth a word, in bytes
)

// Listing is how many bytes a listing of n contenders has.
func (l Limits) Listing(n int) int { return perResponse + n*(perName+l.NameLength) }

// Check says what stands in the way of n contenders, or will soon: each a
// sentence with the figure, the setting and what to do.
func (l Limits) Check(n int) (warnings []string) {
	say := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	most := (l.MaxBuffer - perResponse) / (perName + l.NameLength)
	switch listing := l.Listing(n); {
	case listing > l.MaxBuffer:
		say("a listing of %d contenders has %d bytes, more than jute.maxbuffer (%d): at most %d fit; raise it on servers and clients", n, listing, l.MaxBuffer, most)
	case listing > l.MaxBuffer/2:
		say("a listing of %d contenders has %d bytes, more than half of jute.maxbuffer (%d): at most %d fit", n, listing, l.MaxBuffer, most)
	}
	if l.MaxClientCnxns > 0 && n > l.MaxClientCnxns {
		say("%d sessions from one address are more than maxClientCnxns (%d); raise it, or spread them", n, l.MaxClientCnxns)
	}
	if memory := n * (perWatch + perZnode + 2*l.NameLength); float64(memory) > watchMemory {
		say("watches and znodes of %d contenders take some %d MB of each server's heap", n, memory/1e6)
	}
	if snapshot := n * (perSnapshot + l.NameLength); float64(snapshot) > watchMemory {
		say("the line adds some %d MB to each snapshot", snapshot/1e6)
	}
	return warnings
}
