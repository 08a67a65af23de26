package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/table"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// describe writes what a model answers. It reports whether it answered all.
func (s planSettings) describe(w io.Writer, m fitted) bool {
	fmt.Fprintf(w, "%s\n  fitted to %d trials at %d levels, %d to %d contenders\n",
		m.Name, m.Trials, len(m.Levels), m.Levels[0], m.Levels[len(m.Levels)-1])
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
	for _, n := range s.at.values {
		answered = s.predict(w, m, n) && answered
	}
	fmt.Fprintln(w)
	return answered
}

// predict writes what to expect of n contenders.
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
	fmt.Fprintf(w, "; the first limit is %s, at %d contenders.\n%s", end.Resource, end.At, s.figures(m, n))
	if shares := m.Shares(n, limits); len(shares) > 0 {
		fmt.Fprintf(w, "    busy in a handoff: %s\n", sharesText(shares))
	}
	for _, end := range m.Ends(limits) {
		if m.Far(n) && end.At <= 10*n {
			fmt.Fprintf(w, "    limit at %d contenders: %s: %s\n", end.At, end.Resource, end.Why)
		}
	}
	for _, warning := range limits.Check(n) {
		fmt.Fprintf(w, "    warning: %s\n", warning)
	}
	return true
}

// figures is the table of all figures for n contenders.
func (s planSettings) figures(m fitted, n int) string {
	rows := [][]string{{fmt.Sprintf("  at %d contenders", n), "expected", "95% interval", "hold-out error (median, worst)"}}
	for _, figure := range m.Units() {
		e, err := m.At(figure, n)
		if err != nil {
			continue // of few levels: too little to say
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
