package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Scope is the name of the instrumentation.
const Scope = "github.com/zkrecipes/zkrecipes"

// Names of the metrics and of their attributes.
const (
	// Sessions are the sessions that are open: an up-down counter.
	Sessions = "zkrecipes.sessions"
	// Holds is what is held, by recipe: an up-down counter.
	Holds = "zkrecipes.holds"
	// Wait is how long those who were granted had waited, by recipe: a
	// histogram, in seconds.
	Wait = "zkrecipes.wait.duration"
	// Losses counts sessions and holds that ended without being asked to, by
	// kind and reason. The holds of a lost session count too.
	Losses = "zkrecipes.losses"

	// Recipe is a capability's name: "lock", "semaphore".
	Recipe = "zkrecipes.recipe"
	// Kind is "session" or "hold".
	Kind = "zkrecipes.kind"
	// Reason is a name of the table of errors: "SESSION_EXPIRED".
	Reason = "zkrecipes.reason"
)

// waits are the bounds of Wait's buckets in seconds: a free lock takes
// milliseconds, and some wait for as long as a leader lives.
var waits = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 10, 60, 300, 3600}

// Meters counts what a host has. nil counts nothing.
type Meters struct {
	sessions, holds metric.Int64UpDownCounter
	wait            metric.Float64Histogram
	losses          metric.Int64Counter
}

// NewMeters returns meters of p, or nil if that is nil.
func NewMeters(p metric.MeterProvider) (*Meters, error) {
	if p == nil {
		return nil, nil
	}
	m := p.Meter(Scope)
	var err [4]error
	var all Meters
	all.sessions, err[0] = m.Int64UpDownCounter(Sessions, metric.WithUnit("{session}"),
		metric.WithDescription("Sessions that are open."))
	all.holds, err[1] = m.Int64UpDownCounter(Holds, metric.WithUnit("{hold}"),
		metric.WithDescription("What is held: locks, leaderships, permits, memberships, elements."))
	all.wait, err[2] = m.Float64Histogram(Wait, metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(waits...),
		metric.WithDescription("From the request until it was granted."))
	all.losses, err[3] = m.Int64Counter(Losses, metric.WithUnit("{loss}"),
		metric.WithDescription("Sessions and holds that ended without being asked to."))
	return &all, errors.Join(err[:]...)
}

// SessionOpened notes a session.
func (m *Meters) SessionOpened() {
	if m != nil {
		m.sessions.Add(context.Background(), 1)
	}
}

// SessionEnded notes its end.
func (m *Meters) SessionEnded(reason error) {
	if m == nil {
		return
	}
	m.sessions.Add(context.Background(), -1)
	m.lost("session", reason)
}

// Granted notes that something is held from now on.
func (m *Meters) Granted(ctx context.Context, recipe string, waited time.Duration) {
	if m == nil {
		return
	}
	of := metric.WithAttributes(attribute.String(Recipe, recipe))
	m.holds.Add(ctx, 1, of)
	m.wait.Record(ctx, waited.Seconds(), of)
}

// Ended notes that it is no longer.
func (m *Meters) Ended(recipe string, reason error) {
	if m == nil {
		return
	}
	m.holds.Add(context.Background(), -1, metric.WithAttributes(attribute.String(Recipe, recipe)))
	m.lost("hold", reason, attribute.String(Recipe, recipe))
}

// lost counts what the application did not ask for.
func (m *Meters) lost(kind string, reason error, of ...attribute.KeyValue) {
	if errors.Is(reason, recipes.ErrReleased) || errors.Is(reason, recipes.ErrClosed) {
		return
	}
	of = append(of, attribute.String(Kind, kind), attribute.String(Reason, wire.ToFailure(reason).GetReasons()[0]))
	m.losses.Add(context.Background(), 1, metric.WithAttributes(of...))
}
