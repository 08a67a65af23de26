package plan

import (
	"cmp"
	"slices"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// use is what a handoff and a session take of the machines.
type use struct {
	client, server *service        // processor time of a handoff; nil if not known
	session        float64         // resident bytes of the generator for each session; 0 if not known
	alone          []record.Record // of one contender
}

// learn learns it from the records of each level. Where a relay delayed what sessions
// sent, the generator's processor time and memory are the relay's too, and tell nothing.
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

// used fits a service to the levels that have a positive value, or returns nil if they
// are too few.
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

// Share is the part of a handoff's mean time for which a resource is busy, from 0 to 1.
// More than 1 is a resource that the handoff has several of.
type Share struct {
	Resource string
	Part     float64
}

// Shares are what a handoff in a line of n keeps busy, the busiest first. What is left
// is waiting: for round trips, and for others' processes. l says what the resources
// can do.
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
