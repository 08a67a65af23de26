package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/table"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// answers writes a sentence for each question and model. It reports whether all had an answer.
func (s planSettings) answers(w io.Writer, models []fitted) bool {
	answered := true
	for _, question := range []struct {
		asked   bool
		needsAt string // why -at is needed; "" if it is not
		answer  func(io.Writer, []fitted) bool
	}{
		{s.p99 > 0, "", s.answerMosts},
		{s.choose, "strategy: refused: -choose needs -at N, the number of contenders", s.choices},
		{s.watches > 0, "restart: refused: -watches needs -at N, the number of sessions", s.restarts},
		{s.servers > 0, "", s.ensembles},
		{s.lineRate > 0, "", s.answerOneLock},
		{s.hold > 0 && s.lineRate == 0, "wait: refused: -hold needs -at N, the number of contenders, or -line-rate R", described},
	} {
		switch {
		case !question.asked:
		case question.needsAt != "" && len(s.at) == 0:
			fmt.Fprintln(w, question.needsAt)
			answered = false
		default:
			answered = question.answer(w, models) && answered
		}
	}
	return answered
}

// described is the answer to a question that describe answers for each model.
func described(io.Writer, []fitted) bool { return true }

// answerMosts answers -p99: how many contenders keep the limit.
func (s planSettings) answerMosts(w io.Writer, models []fitted) bool {
	answered := true
	for _, m := range models {
		answered = s.answerMost(w, m) && answered
	}
	return answered
}

func (s planSettings) answerMost(w io.Writer, m fitted) bool {
	most, err := m.Most(unit.HandoffP99, float64(s.p99))
	switch {
	case err != nil:
		fmt.Fprintf(w, "p99 handoff: %v: %s\n", err, m.Name)
		return false
	case most.Likely == 0:
		fmt.Fprintf(w, "p99 handoff under %v: not even with 2 contenders: %s\n", s.p99, m.Name)
		return false
	case most.Safe == 0:
		fmt.Fprintf(w, "p99 handoff under %v: no number with 95%% certainty", s.p99)
	default:
		fmt.Fprintf(w, "p99 handoff under %v: up to %s with 95%% certainty", s.p99, english.Count(most.Safe, "contender"))
	}
	end := m.Ends(s.limitsOf(m))[0]
	fmt.Fprintf(w, "; the first limit is %s, at %d; likely up to %d", end.Resource, end.At, most.Likely)
	if most.Capped {
		fmt.Fprint(w, " and more")
	}
	fmt.Fprintf(w, ": %s\n", m.Name)
	return true
}

// choices answers -choose: which strategy to use at each number of contenders, and why.
func (s planSettings) choices(w io.Writer, models []fitted) bool {
	answered := true
	for _, place := range places(models) {
		for _, n := range s.at {
			answered = s.choice(w, place, n) && answered
		}
	}
	return answered
}

func (s planSettings) choice(w io.Writer, models []fitted, n int) bool {
	type option struct {
		fitted
		rate, bytes plan.Estimate
	}
	var options []option
	why := "records of one strategy only; make others with: " + sweepCommand(models[0], "")
	for _, m := range models {
		rate, err := m.At(unit.Handoffs, n)
		bytes, err2 := m.At(unit.Bytes, n)
		if err = cmp.Or(err, err2); err == nil {
			options = append(options, option{m, rate, bytes})
		} else {
			why = err.Error()
		}
	}
	if len(options) < 2 {
		fmt.Fprintf(w, "strategy: refused: %s\n", why)
		return false
	}
	slices.SortFunc(options, func(a, b option) int { return cmp.Compare(b.rate.Value, a.rate.Value) })
	best := options[0]
	fmt.Fprintf(w, "strategy for %s on %s: %s, with %s handoffs/s and %s bytes of answers a handoff", english.Count(n, "contender"), best.place,
		best.Strategy, unit.Quantity(unit.Handoffs, best.rate.Value), unit.Quantity(unit.Bytes, best.bytes.Value))
	for _, o := range options[1:] {
		fmt.Fprintf(w, "; %s makes %s and takes %s", o.Strategy, unit.Quantity(unit.Handoffs, o.rate.Value), unit.Quantity(unit.Bytes, o.bytes.Value))
		if o.rate.Hi > best.rate.Lo {
			fmt.Fprint(w, " (not surely slower)")
		}
	}
	fmt.Fprintln(w)
	return true
}

// restarts answers -watches: what a rolling restart and a lost session cost.
func (s planSettings) restarts(w io.Writer, models []fitted) bool {
	for _, place := range places(models) {
		servers := place[0].servers
		for _, n := range s.at {
			moved := plan.Moved(n, servers)
			fmt.Fprintf(w, "rolling restart on %s: %s with %s, and %s set again", place[0].place, english.Count(n, "session"), english.Count(moved, "reconnect"), english.Count(moved*s.watches, "watch"))
			if servers == 1 {
				fmt.Fprint(w, ", and nothing is granted while the server is down")
			} else {
				fmt.Fprint(w, "; no lock is lost if each is back within its session timeout")
			}
			fmt.Fprintln(w)
		}
		m := place[0]
		for _, other := range place {
			if other.Strategy < m.Strategy { // prefers handoff
				m = other
			}
		}
		if e, err := m.At(unit.HandoffP50, s.at[0]); err == nil {
			fmt.Fprintf(w, "lost session on %s: no contender holds for up to %v, its timeout, and a handoff of %s (%s)\n",
				m.place, s.limitsOf(m).Timeout, unit.Quantity(unit.HandoffP50, e.Value), m.Strategy)
		}
	}
	return true
}

// ensembles answers -servers: how another number of servers changes writes.
func (s planSettings) ensembles(w io.Writer, models []fitted) bool {
	const n = 100 // contenders: the servers' part of a handoff does not depend on them
	answered := true
	for _, group := range alike(models, func(m fitted) string {
		return fmt.Sprintf("%s, %s, %s, %v", m.Workload, m.Strategy, m.transport, m.hold)
	}) {
		m := group[0]
		var measured []plan.Measured
		for _, other := range group {
			if e, err := other.At(unit.Time, n); err == nil {
				measured = append(measured, plan.Measured{Servers: other.servers, Time: e})
			}
		}
		most := slices.MaxFunc(group, func(a, b fitted) int { return a.servers - b.servers })
		e, err := plan.OnServers(measured, s.servers)
		now, err2 := most.At(unit.Time, n)
		if err != nil || err2 != nil {
			missing := 3
			if m.servers == 3 {
				missing = 1
			}
			fmt.Fprintf(w, "%s, %s: refused: %v; make them with: %s\n", english.Count(s.servers, "server"), m.Strategy, err, sweepCommand(m, fmt.Sprintf("-ensemble %d", missing)))
			answered = false
			continue
		}
		change := func(v float64) float64 { return 100 * (v/now.Value - 1) }
		fmt.Fprintf(w, "%s instead of %d, %s: a handoff, which is a write, takes %+.0f%% (95%%: %+.0f%% to %+.0f%%) and %s may fail instead of %d\n",
			english.Count(s.servers, "server"), most.servers, m.Strategy, change(e.Value), change(e.Lo), change(e.Hi), english.Count(plan.Tolerated(s.servers), "server"), plan.Tolerated(most.servers))
	}
	return answered
}

// answerOneLock answers -line-rate for one lock: how busy it is with holds of -hold, and how long
// acquisitions wait. Without -hold there is no such question, so it returns true.
func (s planSettings) answerOneLock(w io.Writer, models []fitted) bool {
	answered := s.hold == 0
	for _, m := range models {
		busy, err := m.Open(s.lineRate, s.hold, s.seed)
		if err != nil {
			continue
		}
		answered = true
		if busy.Share >= 1 {
			fmt.Fprintf(w, "one lock %g times a second for %v: too much, it would be busy %.0f%% of the time: %s\n", s.lineRate, s.hold, 100*busy.Share, m.Name)
			continue
		}
		wait := func(e plan.Estimate) string {
			return fmt.Sprintf("%s (%s to %s)", unit.Nanoseconds(e.Value), unit.Nanoseconds(e.Lo), unit.Nanoseconds(e.Hi))
		}
		fmt.Fprintf(w, "one lock %g times a second for %v: busy %.0f%% of the time, an acquisition waits %s in the median and %s at p99: %s\n",
			s.lineRate, s.hold, 100*busy.Share, wait(busy.P50), wait(busy.P99), m.Name)
	}
	if !answered {
		fmt.Fprintf(w, "one lock: refused: %v; make them with: %s\n", plan.ErrNotDrain, sweepCommand(models[0].drain(), ""))
	}
	return answered
}

func (s planSettings) describe(w io.Writer, m fitted) bool {
	fmt.Fprintf(w, "%s\n  fitted to %s at %s, %d to %d contenders\n",
		m.Name, english.Count(m.Trials, "trial"), english.Count(len(m.Levels), "level"), m.Levels[0], m.Levels[len(m.Levels)-1])
	if law, ok := m.Scalability(); ok {
		fmt.Fprintf(w, "  throughput: lambda %.4g/s, contention sigma %.3g, crosstalk kappa %.3g", law.Lambda, law.Sigma, law.Kappa)
		if peak := law.Peak(); peak > 1 && !math.IsInf(peak, 0) {
			fmt.Fprintf(w, "; highest at %.0f contenders", peak)
		}
		fmt.Fprintln(w)
	}
	if s.rtt >= 0 {
		fmt.Fprintf(w, "  with %v added to each round trip: %s\n", s.rtt, m.Trips())
	}
	answered := true
	for _, n := range s.at {
		answered = s.predict(w, m, n) && answered
	}
	fmt.Fprintln(w)
	return answered
}

func (s planSettings) predict(w io.Writer, m fitted, n int) bool {
	mean, err := m.At(unit.Handoffs, n)
	if err != nil {
		fmt.Fprintf(w, "  refused: %v\n", err)
		return false
	}
	limits := s.limitsOf(m)
	fmt.Fprintf(w, "  %d contenders make %s handoffs/s (95%%: %s to %s)", n, unit.Quantity(mean.Unit, mean.Value), unit.Quantity(mean.Unit, mean.Lo), unit.Quantity(mean.Unit, mean.Hi))
	if m.Far(n) {
		fmt.Fprintf(w, ", %.3g times as many as were measured", float64(n)/float64(m.Levels[len(m.Levels)-1]))
	}
	end := m.Ends(limits)[0]
	fmt.Fprintf(w, "; the first limit is %s, at %s.\n%s", end.Resource, english.Count(end.At, "contender"), s.figures(m, n))
	if shares := m.Shares(n, limits); len(shares) > 0 {
		fmt.Fprintf(w, "    busy in a handoff: %s\n", sharesText(shares))
	}
	for _, end := range m.Ends(limits) {
		if m.Far(n) && end.At <= 10*n {
			fmt.Fprintf(w, "    limit at %s: %s: %s\n", english.Count(end.At, "contender"), end.Resource, end.Why)
		}
	}
	for _, warning := range limits.Check(n) {
		fmt.Fprintf(w, "    warning: %s\n", warning)
	}
	return true
}

func (s planSettings) figures(m fitted, n int) string {
	rows := [][]string{{"  at " + english.Count(n, "contender"), "expected", "95% interval", "hold-out error (median, worst)"}}
	for _, figure := range m.Units() {
		e, err := m.At(figure, n)
		if err != nil {
			continue // too few levels have the figure
		}
		rows = append(rows, []string{
			"    " + figure, unit.Quantity(figure, e.Value), unit.Quantity(figure, e.Lo) + " to " + unit.Quantity(figure, e.Hi),
			fmt.Sprintf("%.1f%%, %.1f%%", 100*e.Typical, 100*e.Worst),
		})
	}
	if e, err := m.At(unit.HandoffP50, n); err == nil && s.hold > 0 {
		last := func(handoff float64) time.Duration {
			return time.Duration(float64(n-1) * (float64(s.hold) + handoff)).Round(time.Millisecond)
		}
		rows = append(rows, []string{"    wait of the last in line", last(e.Value).String(), fmt.Sprintf("%v to %v", last(e.Lo), last(e.Hi)), ""})
	}
	return table.Align(rows, 1)
}

func sharesText(shares []plan.Share) string {
	var parts []string
	for _, share := range shares {
		parts = append(parts, fmt.Sprintf("%s %.0f%%", share.Resource, 100*share.Part))
	}
	return strings.Join(parts, ", ") + "; the rest is waiting"
}

// answerLines answers -line-rate for many locks: how many independent lines the servers carry, for
// each combination with trials of -workload many. It reports whether there was an answer.
func (s planSettings) answerLines(w io.Writer, runs []record.Run) bool {
	if s.lineRate == 0 {
		return true
	}
	machine := report.Machines(runs)
	groups := report.By(runs, func(run record.Run, r record.Record) string {
		if _, ok := r.Metric(unit.Handoffs); !ok || !r.Valid() || r.Workload != load.Many {
			return ""
		}
		r.Lines = 0
		return fmt.Sprintf("%s each, %s", english.Count(r.Contenders, "contender"), report.Title(r, run.Environment.Server)+machine(run, r))
	})
	if len(groups) == 0 {
		fmt.Fprintf(w, "independent lines: refused: no valid trials of -workload many in the records; make them with: "+
			"zkbench run %s -workload many -recipe lock -contenders 5 -lines 20 -record many20.jsonl\n", unfitted(runs[0]).where())
		return false
	}
	for _, g := range groups {
		levels := map[int]report.Level{} // key: the number of lines
		for _, r := range g.Records {
			levels[r.Lines] = report.Level{Trials: append(levels[r.Lines].Trials, r)}
		}
		best, most := 0, slices.Max(slices.Collect(maps.Keys(levels)))
		var middle report.Median // handoffs a second of all lines together
		for _, n := range slices.Sorted(maps.Keys(levels)) {
			if m, _ := levels[n].Median(unit.Handoffs); best == 0 || m.Value > middle.Value {
				best, middle = n, m
			}
		}
		rates := levels[best].Values(unit.Handoffs)
		at := func(rate float64) int { return int(carried * rate / s.lineRate) }
		fmt.Fprintf(w, "independent lines of %v handoffs/s, %s: %d (%d to %d by the slowest and the fastest trial); %.0f%% of the %.4g handoffs/s that %s made\n",
			s.lineRate, g.Title, at(middle.Value), at(slices.Min(rates)), at(slices.Max(rates)), 100*carried, middle.Value, english.Count(best, "line"))
		if best == most {
			fmt.Fprintf(w, "  warning: the largest number of lines had the highest throughput; the servers may carry more, which only a run with more -lines can show\n")
		}
	}
	return true
}

// failovers writes, for -watches, how long no contender held in the recorded failovers.
func (s planSettings) failovers(w io.Writer, runs []record.Run) {
	if s.watches == 0 {
		return
	}
	for _, g := range report.By(runs, func(run record.Run, r record.Record) string {
		if _, ok := r.Metric(unit.HandoffP50); !ok || !r.Valid() || r.Workload != load.Failover {
			return ""
		}
		return fmt.Sprintf("%s, %s", english.Count(r.Contenders, "contender"), report.Title(r, run.Environment.Server))
	}) {
		level := report.Level{Trials: g.Records}
		took := level.Values(unit.HandoffP50)
		fmt.Fprintf(w, "lost session, measured: no contender held for %s (%s to %s in %s): %s\n", level.Cell(unit.HandoffP50),
			unit.Quantity(unit.HandoffP50, slices.Min(took)), unit.Quantity(unit.HandoffP50, slices.Max(took)), english.Count(len(took), "trial"), g.Title)
	}
}
