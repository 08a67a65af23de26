package traffic

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/internal/english"
)

const (
	// LeastFit and LeastHeldOut are how many acquisitions the parts of a path must have.
	LeastFit     = 100
	LeastHeldOut = 30

	draws      = 200
	confidence = 0.95
	warmUp     = 500  // arrivals of a draw that do not count, because the line is empty at first
	mostDrawn  = 5000 // arrivals of a draw that count
)

// Waits holds wait-time statistics, in nanoseconds.
type Waits struct{ P50, P99, Mean plan.Estimate }

// Forecast is the prediction for one path.
type Forecast struct {
	Rate float64       // acquisitions a second
	Hold time.Duration // mean
	Used float64       // the share of the time in which all permits are held
	// Growth is the factor by which arrivals can grow until all permits are always held.
	Growth float64
	Waits  Waits // with the requested growth
	// Predicted are the waits of the part that was held out, as a fit of the part before it
	// predicts them. Measured has values without intervals.
	Predicted, Measured Waits
	HeldOut             int // acquisitions
}

// Predict predicts the waits if arrivals come growth times as often. The part from split to the end
// of the log is held out first. An error means that the waits cannot be predicted. The forecast
// then has none.
func (p *Path) Predict(l *Log, split time.Time, growth float64, seed uint64) (Forecast, error) {
	at := slices.IndexFunc(p.Acquisitions, func(a Acquisition) bool { return !a.At.Before(split) })
	if at < 0 {
		at = len(p.Acquisitions)
	}
	before, after := p.Acquisitions[:at], p.Acquisitions[at:]
	f := p.used(p.Acquisitions, l.To.Sub(l.From))
	f.HeldOut = len(after)
	fitted := p.used(before, split.Sub(l.From))
	switch {
	case len(before) < LeastFit:
		return f, fmt.Errorf("too few arrivals: %d before the part that is held out; at least %d are needed", len(before), LeastFit)
	case len(after) < LeastHeldOut:
		return f, fmt.Errorf("no part to hold out: %s after %s; at least %d are needed to know the error", english.Count(len(after), "arrival"), split.UTC().Format(time.RFC3339), LeastHeldOut)
	case f.Used == 0:
		return f, errors.New("all holds are shorter than a millisecond, the unit of the log")
	case max(f.Used, fitted.Used) >= 1:
		return f, fmt.Errorf("holds that began in the log take %.0f%% of its time: the line grows without end", 100*max(f.Used, fitted.Used))
	case f.Used*growth >= 1:
		return f, fmt.Errorf("%g times the arrivals would take %.0f%% of the time", growth, 100*f.Used*growth)
	}
	if err := p.follow(); err != nil {
		return f, err
	}
	part := l.To.Sub(split)
	f.Predicted = p.predict(before, l.From, part, 1, seed)
	f.Waits = p.predict(p.Acquisitions, l.From, part, growth, seed)
	measured := make([]float64, len(after))
	for i, a := range after {
		measured[i] = float64(a.Wait)
	}
	slices.Sort(measured)
	f.Measured.P50.Value, f.Measured.P99.Value, f.Measured.Mean.Value = figures(measured)
	return f, nil
}

func (p *Path) used(all []Acquisition, in time.Duration) Forecast {
	var held time.Duration
	for _, a := range all {
		held += a.Hold
	}
	n := float64(len(all))
	f := Forecast{Rate: n / in.Seconds(), Used: held.Seconds() / in.Seconds() / float64(p.Permits)}
	if n > 0 {
		f.Hold = held / time.Duration(len(all))
	}
	f.Growth = 1 / f.Used
	return f
}

// follow returns an error if the recorded waits do not follow from the recorded arrivals and holds.
// The times of a log are milliseconds.
func (p *Path) follow() error {
	var q = p.newQueue()
	var recorded, computed float64
	last := p.Acquisitions[0].At
	for _, a := range p.Acquisitions {
		recorded += float64(a.Wait)
		computed += q.arrive(float64(a.At.Sub(last)), float64(a.Hold))
		last = a.At
	}
	n := float64(len(p.Acquisitions))
	if off := math.Abs(recorded - computed); off > n*float64(time.Millisecond) && off > 0.1*max(recorded, computed) {
		return fmt.Errorf("the waits in the log (%v in the mean) are not those that follow from its holds (%v): holds are missing, or overlap",
			time.Duration(recorded/n).Round(time.Millisecond), time.Duration(computed/n).Round(time.Millisecond))
	}
	return nil
}

// queue computes waits, first come, first served.
type queue struct {
	now  float64
	free []float64 // when each permit becomes free, sorted
}

func (p *Path) newQueue() queue { return queue{free: make([]float64, p.Permits)} }

// arrive returns the wait of an arrival that comes gap after the one before.
func (q *queue) arrive(gap, hold float64) float64 {
	q.now += gap
	granted := max(q.now, q.free[0])
	ends := granted + hold
	i, _ := slices.BinarySearch(q.free[1:], ends)
	copy(q.free, q.free[1:i+1])
	q.free[i] = ends
	return granted - q.now
}

// predict draws arrivals with their holds, and computes the waits over a time as long as part.
func (p *Path) predict(all []Acquisition, from time.Time, part time.Duration, growth float64, seed uint64) Waits {
	gaps, holds := make([]float64, len(all)), make([]float64, len(all))
	for i, a := range all {
		gaps[i], holds[i] = float64(a.At.Sub(from))/growth, float64(a.Hold)
		from = a.At
	}
	random := rand.New(rand.NewPCG(seed, 4))
	length := int(math.Ceil(math.Sqrt(float64(len(all)))))
	var p50, p99, mean []float64
	for range draws {
		// The first draw simulates another period to fit, the second another period to predict.
		starts := make([]int, len(all)/length)
		for i := range starts {
			starts[i] = random.IntN(len(all))
		}
		q := p.newQueue()
		var waits []float64
		for counted := 0.0; counted < float64(part) && len(waits) < warmUp+mostDrawn || len(waits) <= warmUp; {
			start := starts[random.IntN(len(starts))]
			for i := range length {
				at := (start + i) % len(all)
				waits = append(waits, q.arrive(gaps[at], holds[at]))
				if len(waits) > warmUp {
					counted += gaps[at]
				}
			}
		}
		waits = waits[warmUp:]
		slices.Sort(waits)
		median, worst, middle := figures(waits)
		p50, p99, mean = append(p50, median), append(p99, worst), append(mean, middle)
	}
	return Waits{estimate(p50), estimate(p99), estimate(mean)}
}

func figures(sorted []float64) (p50, p99, mean float64) {
	return stat.Quantile(0.5, stat.Empirical, sorted, nil), stat.Quantile(0.99, stat.Empirical, sorted, nil), stat.Mean(sorted, nil)
}

func estimate(drawn []float64) plan.Estimate {
	slices.Sort(drawn)
	at := func(q float64) float64 { return stat.Quantile(q, stat.Empirical, drawn, nil) }
	return plan.Estimate{Value: at(0.5), Lo: at((1 - confidence) / 2), Hi: at((1 + confidence) / 2)}
}

// Sample is a server's reply to mntr.
type Sample struct {
	Server  string
	Time    time.Time
	Figures map[string]float64 // by ZooKeeper's names without zk_
}

// Load is what the first and the last sample of one server say.
type Load struct {
	Server   string
	From, To time.Time
	Samples  int
	Packets  float64 // received a second
	// Least and Most bound the share of the time in which the server syncs its log to the disk. It
	// counts whole milliseconds. Most is 0 if it does not count them: before 3.6.
	Least, Most float64

	Connections int // in the last sample
	Open, Files int // descriptors, and the limit; 0 if they are unknown
}

// Loads returns the load of each server. An error is a refusal.
func (l *Log) Loads(samples []Sample) (all []Load, err error) {
	slices.SortStableFunc(samples, func(a, b Sample) int { return a.Time.Compare(b.Time) })
	servers := map[string][]Sample{}
	for _, s := range samples {
		servers[s.Server] = append(servers[s.Server], s)
	}
	for name, of := range servers {
		first, last := of[0], of[len(of)-1]
		took := last.Time.Sub(first.Time)
		switch {
		case took <= 0:
			return nil, fmt.Errorf("the load of %s: one sample has no rate; give two or more with different times", name)
		case last.Time.Before(l.From) || first.Time.After(l.To):
			return nil, fmt.Errorf("the load of %s: the samples are from %s to %s, and the log is from %s to %s", name,
				stamp(first.Time), stamp(last.Time), stamp(l.From), stamp(l.To))
		}
		for i := 1; i < len(of); i++ {
			if of[i].Figures["packets_received"] < of[i-1].Figures["packets_received"] {
				return nil, fmt.Errorf("the load of %s: its counters were reset before %s; give the samples after that", name, stamp(of[i].Time))
			}
		}
		grown := func(figure string) float64 { return last.Figures[figure] - first.Figures[figure] }
		load := Load{
			Server: name, From: first.Time, To: last.Time, Samples: len(of), Packets: grown("packets_received") / took.Seconds(),
			Connections: int(last.Figures["num_alive_connections"]),
			Open:        int(last.Figures["open_file_descriptor_count"]), Files: int(last.Figures["max_file_descriptor_count"]),
		}
		if n := grown("cnt_fsynctime"); n > 0 {
			ms := float64(took.Milliseconds())
			load.Least, load.Most = grown("sum_fsynctime")/ms, min(1, (grown("sum_fsynctime")+n)/ms)
		}
		all = append(all, load)
	}
	if len(all) == 0 {
		return nil, errors.New("the servers' load: no samples")
	}
	slices.SortFunc(all, func(a, b Load) int {
		if a.Most > b.Most || a.Most == b.Most && a.Server < b.Server {
			return -1
		}
		return 1
	})
	return all, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
