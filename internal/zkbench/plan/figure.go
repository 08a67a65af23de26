package plan

import (
	"math"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// Undisturbed is the 10th percentile of the handoff. On a machine that does other
// things too, most handoffs wait for a processor. The fastest tenth tells what a
// handoff takes by itself.
const Undisturbed = "p10-handoff-ns"

// times are the figures that the service model knows. Throughput is the reverse of the
// mean.
var times = []string{unit.Time, Undisturbed, unit.HandoffP50, unit.HandoffP99}

// pong is the size of the answer to a keep-alive, in bytes.
const pong = 20

// Figure returns a figure of a record as the plan takes it. Of bytes, keep-alives are
// left out: they come by the second, not by the handoff.
func Figure(r record.Record, figure string) (float64, bool) {
	switch figure {
	case Undisturbed:
		if r.Handoff == nil || r.Handoff.TotalCount() == 0 {
			return 0, false
		}
		return float64(r.Handoff.ValueAtPercentile(10)), true
	case unit.Bytes:
		bytes := float64(r.Counters.ResponseBytes-pong*r.Counters.Pings) / float64(r.Operations)
		return bytes, bytes >= 0 && !math.IsInf(bytes, 0)
	}
	return r.Metric(figure)
}
