// Package unit names the figures of a record, as they stand in its files.
package unit

import (
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchunit"
)

// Units of the metrics, in the order in which they are written. An op is a
// handoff; of a contender that is alone it is a turn (acquire and release).
const (
	Time       = "ns/op"
	Handoffs   = "handoffs/s"
	HandoffP50 = "p50-handoff-ns" // see package load for handoff and wait
	HandoffP99 = "p99-handoff-ns"
	WaitP50    = "p50-wait-ns"
	WaitP99    = "p99-wait-ns"
	Reads      = "reads/op"
	Writes     = "writes/op"
	Syncs      = "syncs/op" // questions to the leader that are no transaction
	Events     = "watch-events/op"
	Bytes      = "response-bytes/op"
	Fallbacks  = "fallbacks/op"   // of recipes.Handoff: listings after all
	Asked      = "asked/op"       // grants that had to ask the leader
	Acquired   = "acquisitions/s" // of an open load
	Ops        = "ops/s"          // of workloads of rounds
	ServiceP50 = "p50-service-ns" // of an open load, and of rounds
	ServiceP99 = "p99-service-ns"
	LateP99    = "p99-late-ns" // behind schedule
	TurnsMin   = "min-turns"   // of the contender that had fewest
	TurnsMax   = "max-turns"
	TurnsCV    = "cv-turns" // standard deviation over mean: 0 is fair
	Packets    = "server-packets/op"
	Fsyncs     = "server-fsyncs/op"
	ServerCPU  = "server-cpu-ns/op"
	HostCPU    = "host-cpu-ns/op"  // of this process
	OtherCPU   = "other-cpu-ns/op" // of the processes that sessions go through
	RSS        = "MB-rss"          // of the whole process, all enrolled
	Session    = "MB-heap/session" // and by how much each session grew it
	RSSEach    = "MB-rss/session"  // MB-rss over the number of sessions
)

// Invalid is the configuration line of results that are invalid; it says why. Programs
// that compare results do not mix different configurations.
const Invalid = "invalid"

// Quantity writes a value in its unit for people, with three or four digits.
func Quantity(unit string, v float64) string {
	switch {
	case strings.HasSuffix(unit, "-ns") || strings.Contains(unit, "ns/op"):
		d := time.Duration(v)
		if d < time.Microsecond {
			return d.String()
		}
		digits := math.Pow(10, math.Floor(math.Log10(v))-2)
		return d.Round(time.Duration(digits)).String()
	case v < 1:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case v < 10_000:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return benchunit.Scale(v, benchunit.Decimal)
}
