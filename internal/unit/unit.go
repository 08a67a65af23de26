// Package unit has the names of the figures of a record, as files of results have them.
package unit

import (
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchunit"
)

// Units of the metrics, in the order in which they are written. An op is a handoff; for a
// single contender it is a turn (acquire and release).
const (
	Time       = "ns/op"
	Handoffs   = "handoffs/s"
	HandoffP50 = "p50-handoff-ns" // see package load for handoff and wait
	HandoffP99 = "p99-handoff-ns"
	WaitP50    = "p50-wait-ns"
	WaitP99    = "p99-wait-ns"
	Reads      = "reads/op"
	Writes     = "writes/op"
	Syncs      = "syncs/op" // requests to the leader without a transaction
	Events     = "watch-events/op"
	Bytes      = "response-bytes/op"
	Fallbacks  = "fallbacks/op"   // handoffs by recipes.Handoff that needed a listing
	Asked      = "asked/op"       // grants that waited for a sync with the leader
	Acquired   = "acquisitions/s" // of an open load, and of a timeline
	Ops        = "ops/s"          // of workloads of rounds
	ServiceP50 = "p50-service-ns" // of an open load, and of rounds
	ServiceP99 = "p99-service-ns"
	LateP99    = "p99-late-ns" // behind schedule
	NoGrant    = "no-grant-ns" // of a timeline: the longest time without a grant after a fault
	TurnsMin   = "min-turns"   // of the contender with the fewest
	TurnsMax   = "max-turns"
	TurnsCV    = "cv-turns" // standard deviation over mean: 0 is fair
	Packets    = "server-packets/op"
	Fsyncs     = "server-fsyncs/op"
	ServerCPU  = "server-cpu-ns/op"
	HostCPU    = "host-cpu-ns/op"  // of this process
	OtherCPU   = "other-cpu-ns/op" // of the processes that sessions go through
	RSS        = "MB-rss"          // of the whole process, when all have joined
	Session    = "MB-heap/session" // growth of heap and stacks for each session
	RSSEach    = "MB-rss/session"  // MB-rss over the number of sessions
)

// Invalid is the key of the configuration line that marks invalid results, with the reason.
// Programs that compare results do not mix different configurations.
const Invalid = "invalid"

// Quantity formats a value of a unit with three or four digits.
func Quantity(unit string, v float64) string {
	switch {
	case strings.HasSuffix(unit, "-ns") || strings.Contains(unit, "ns/op"):
		return Nanoseconds(v)
	case v < 1:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case v < 10_000:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return benchunit.Scale(v, benchunit.Decimal)
}

// Nanoseconds formats a time with three digits.
func Nanoseconds(v float64) string {
	d := time.Duration(v)
	if d < time.Microsecond {
		return d.String()
	}
	digits := math.Pow(10, math.Floor(math.Log10(v))-2)
	return d.Round(time.Duration(digits)).String()
}
