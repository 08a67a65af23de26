// Package telemetry instruments the connection between host and plugin with OpenTelemetry.
// Without a provider it installs nothing, and costs nothing.
package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	nometric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/stats"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Server returns the handler that traces and measures the calls of a gRPC server; nil without
// a provider.
func Server(t trace.TracerProvider, m metric.MeterProvider) stats.Handler {
	return handler(t, m, otelgrpc.NewServerHandler)
}

// Client returns the same handler for a connection.
func Client(t trace.TracerProvider, m metric.MeterProvider) stats.Handler {
	return handler(t, m, otelgrpc.NewClientHandler)
}

// handler leaves nothing to OpenTelemetry's globals, which belong to the application: without
// a provider nothing is recorded. Both ends are ours, so the context is propagated in W3C's
// format, whatever the application uses elsewhere.
func handler(t trace.TracerProvider, m metric.MeterProvider, of func(...otelgrpc.Option) stats.Handler) stats.Handler {
	if t == nil && m == nil {
		return nil
	}
	if t == nil {
		t = notrace.NewTracerProvider()
	}
	if m == nil {
		m = nometric.NewMeterProvider()
	}
	return of(otelgrpc.WithTracerProvider(t), otelgrpc.WithMeterProvider(m), otelgrpc.WithPropagators(propagation.TraceContext{}))
}

// Scope is the name of the instrumentation.
const Scope = "github.com/zkrecipes/zkrecipes"

// Names of the metrics and of their attributes.
const (
	// Sessions is an up-down counter of the open sessions.
	Sessions = "zkrecipes.sessions"
	// Holds is an up-down counter of the grants that are held, by recipe.
	Holds = "zkrecipes.holds"
	// Wait is a histogram of the time from request to grant, in seconds, by recipe.
	Wait = "zkrecipes.wait.duration"
	// Losses counts sessions and holds that ended although the application did not end them,
	// by kind and reason. It includes the holds of a lost session.
	Losses = "zkrecipes.losses"

	// Recipe is a capability's name: "lock", "semaphore".
	Recipe = "zkrecipes.recipe"
	// Kind is "session" or "hold".
	Kind = "zkrecipes.kind"
	// Reason is a name of the table of errors: "SESSION_EXPIRED".
	Reason = "zkrecipes.reason"
)

// waits are the bucket bounds of Wait, in seconds: a free lock takes milliseconds, and some
// contenders wait as long as a leader lives.
var waits = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 10, 60, 300, 3600}

// Meters counts a host's sessions and holds. nil counts nothing.
type Meters struct {
	sessions, holds metric.Int64UpDownCounter
	wait            metric.Float64Histogram
	losses          metric.Int64Counter
}

// NewMeters returns the meters of p, or nil if p is nil.
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
		metric.WithDescription("Time from the request to the grant."))
	all.losses, err[3] = m.Int64Counter(Losses, metric.WithUnit("{loss}"),
		metric.WithDescription("Sessions and holds that ended although the application did not end them."))
	return &all, errors.Join(err[:]...)
}

// SessionOpened counts a session.
func (m *Meters) SessionOpened() {
	if m != nil {
		m.sessions.Add(context.Background(), 1)
	}
}

// SessionEnded counts the end of a session.
func (m *Meters) SessionEnded(reason error) {
	if m == nil {
		return
	}
	m.sessions.Add(context.Background(), -1)
	m.lost("session", reason)
}

// Granted counts a hold that begins.
func (m *Meters) Granted(ctx context.Context, recipe string, waited time.Duration) {
	if m == nil {
		return
	}
	of := metric.WithAttributes(attribute.String(Recipe, recipe))
	m.holds.Add(ctx, 1, of)
	m.wait.Record(ctx, waited.Seconds(), of)
}

// Ended counts the end of a hold.
func (m *Meters) Ended(recipe string, reason error) {
	if m == nil {
		return
	}
	m.holds.Add(context.Background(), -1, metric.WithAttributes(attribute.String(Recipe, recipe)))
	m.lost("hold", reason, attribute.String(Recipe, recipe))
}

// lost counts the end of a session or hold, unless the application caused it.
func (m *Meters) lost(kind string, reason error, of ...attribute.KeyValue) {
	if errors.Is(reason, recipes.ErrReleased) || errors.Is(reason, recipes.ErrClosed) {
		return
	}
	of = append(of, attribute.String(Kind, kind), attribute.String(Reason, wire.ToFailure(reason).GetReasons()[0]))
	m.losses.Add(context.Background(), 1, metric.WithAttributes(of...))
}
