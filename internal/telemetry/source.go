package telemetry

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A Source is a session whose figures are read at each collection.
type Source struct {
	// Stats returns what the session has sent so far. If it fails, the latest figures count.
	Stats func(context.Context) (recipes.Stats, error)
	// Remaining returns the time until the session's deadline. It sends nothing.
	Remaining func() time.Duration

	reading chan struct{} // holds one element while the figures are read
	lost    bool          // under Meters.mu
	latest  recipes.Stats // under Meters.mu
}

// patience bounds a call of Read.
const patience = time.Second

// Opened counts a session. Call Lost and then Forget when it ends.
func (m *Meters) Opened(s *Source) {
	if m == nil {
		return
	}
	s.reading = make(chan struct{}, 1)
	m.sessions.Add(context.Background(), 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sources[s] = struct{}{}
}

// Lost counts the end of a session. From now on it has no deadline.
func (m *Meters) Lost(s *Source, reason error) {
	if m == nil {
		return
	}
	m.sessions.Add(context.Background(), -1)
	m.lost("session", reason)
	m.mu.Lock()
	defer m.mu.Unlock()
	s.lost = true
}

// Forget stops reading a session. Its latest figures stay in the counters.
func (m *Meters) Forget(s *Source) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.sources[s]; ok {
		m.ended = sum(m.ended, s.latest)
		delete(m.sources, s)
	}
}

// Read reads the figures of these sessions, until ctx ends: at each collection, and before they
// become unavailable.
func (m *Meters) Read(ctx context.Context, sources ...*Source) {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, s := range sources {
		m.read(ctx, s)
	}
}

// read reads one session. Only one call of it runs at a time for a session: figures that arrive
// after later ones would look like those of another process.
func (m *Meters) read(ctx context.Context, s *Source) {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-s.reading }()
	now, err := s.Stats(ctx)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.sources[s]; !ok {
		return
	}
	if fell(s.latest, now) { // another process has resumed the session, and counts from 0
		m.ended = sum(m.ended, s.latest)
	}
	s.latest = now
}

// observe reports the figures at a collection.
func (m *Meters) observe(ctx context.Context, o metric.Observer) error {
	m.mu.Lock()
	sources := slices.Collect(maps.Keys(m.sources))
	m.mu.Unlock()
	m.Read(ctx, sources...)

	m.mu.Lock()
	defer m.mu.Unlock()
	total := m.ended
	var left []time.Duration
	for s := range m.sources {
		total = sum(total, s.latest)
		if !s.lost {
			left = append(left, max(s.Remaining(), 0))
		}
	}
	for operation, n := range total.ByKind {
		o.ObserveInt64(m.requests, n, metric.WithAttributes(attribute.String(Operation, operation)))
	}
	o.ObserveInt64(m.reconnects, total.Reconnects)
	o.ObserveInt64(m.asked, total.Asked)
	if len(left) > 0 {
		o.ObserveFloat64(m.remaining, slices.Min(left).Seconds())
	}
	return nil
}

// fell reports whether a counter has fallen.
func fell(before, now recipes.Stats) bool {
	for operation, n := range before.ByKind {
		if now.ByKind[operation] < n {
			return true
		}
	}
	return now.Reconnects < before.Reconnects || now.Asked < before.Asked
}

// sum returns the sums of the counters that are reported.
func sum(a, b recipes.Stats) recipes.Stats {
	total := recipes.Stats{Reconnects: a.Reconnects + b.Reconnects, Asked: a.Asked + b.Asked, ByKind: make(map[string]int64)}
	for _, of := range []recipes.Stats{a, b} {
		for operation, n := range of.ByKind {
			total.ByKind[operation] += n
		}
	}
	return total
}

type servedKey struct{}

// Served marks the context of an Opener: a plugin opens the session for its host, which reports
// it. If the library reported it too, it would count twice.
func Served(ctx context.Context) context.Context { return context.WithValue(ctx, servedKey{}, true) }

// IsServed reports whether a context is marked.
func IsServed(ctx context.Context) bool { return ctx.Value(servedKey{}) != nil }
