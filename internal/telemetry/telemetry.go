// Package telemetry has the names and the OpenTelemetry instruments of sessions and holds. The
// library reports to them for the sessions of this process (recipes/zookeeper), and the host for
// the sessions of its plugin (internal/rpc/link). Without a provider they cost nothing.
//
// Counters that a session keeps anyway are read when the metrics are collected: see Source. So
// nothing is added to the path of a request.
package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/zkrecipes/zkrecipes/recipes"
)

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
	// Asked counts the grants before which the session synced with the leader.
	Asked = "zkrecipes.grants.asked"
	// Requests counts what the sessions sent to ZooKeeper, by operation.
	Requests = "zkrecipes.requests"
	// Reconnects counts the connections of sessions after their first.
	Reconnects = "zkrecipes.reconnects"
	// Remaining is a gauge of the least time, in seconds, until the deadline of an open session.
	Remaining = "zkrecipes.deadline.remaining"

	// Recipe is a capability's name: "lock", "semaphore".
	Recipe = "recipe"
	// Kind is "session" or "hold".
	Kind = "kind"
	// Reason is a name of the table of errors: "SESSION_EXPIRED".
	Reason = "reason"
	// Operation is a key of recipes.Stats.ByKind: "create", "sync".
	Operation = "operation"
)

// waits are the bucket bounds of Wait, in seconds: a free lock takes milliseconds, and some
// contenders wait as long as a leader lives.
var waits = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 10, 60, 300, 3600}

// Meters counts sessions and holds. nil counts nothing. All methods are safe for concurrent use.
type Meters struct {
	sessions, holds metric.Int64UpDownCounter
	wait            metric.Float64Histogram
	losses          metric.Int64Counter

	asked, requests, reconnects metric.Int64ObservableCounter
	remaining                   metric.Float64ObservableGauge

	mu      sync.Mutex
	sources map[*Source]struct{}
	ended   recipes.Stats       // the figures of sessions that have ended
	granted map[string]struct{} // recipes whose losses are reported
}

// NewMeters returns the meters of p, or nil if p is nil. They stay registered with p, because
// their counters must not fall.
func NewMeters(p metric.MeterProvider) (*Meters, error) {
	switch p := p.(type) {
	case nil:
		return nil, nil
	case *shared:
		return p.meters()
	}
	m := p.Meter(Scope)
	var err [9]error
	all := &Meters{sources: make(map[*Source]struct{}), granted: make(map[string]struct{})}
	all.sessions, err[0] = m.Int64UpDownCounter(Sessions, metric.WithUnit("{session}"),
		metric.WithDescription("Sessions that are open."))
	all.holds, err[1] = m.Int64UpDownCounter(Holds, metric.WithUnit("{hold}"),
		metric.WithDescription("What is held: locks, leaderships, permits, memberships, elements."))
	all.wait, err[2] = m.Float64Histogram(Wait, metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(waits...),
		metric.WithDescription("Time from the request to the grant."))
	all.losses, err[3] = m.Int64Counter(Losses, metric.WithUnit("{loss}"),
		metric.WithDescription("Sessions and holds that ended although the application did not end them."))
	all.asked, err[4] = m.Int64ObservableCounter(Asked, metric.WithUnit("{grant}"),
		metric.WithDescription("Grants before which the session synced with the leader."))
	all.requests, err[5] = m.Int64ObservableCounter(Requests, metric.WithUnit("{request}"),
		metric.WithDescription("Requests to ZooKeeper, by operation."))
	all.reconnects, err[6] = m.Int64ObservableCounter(Reconnects, metric.WithUnit("{connection}"),
		metric.WithDescription("Connections of sessions after their first."))
	all.remaining, err[7] = m.Float64ObservableGauge(Remaining, metric.WithUnit("s"),
		metric.WithDescription("The least time until the deadline of an open session, when it ends itself."))
	if err := errors.Join(err[:]...); err != nil {
		return nil, err
	}
	for _, reason := range sessionLosses {
		all.losses.Add(context.Background(), 0, lossOf("session", reason))
	}
	_, err[8] = m.RegisterCallback(all.observe, all.asked, all.requests, all.reconnects, all.remaining)
	return all, err[8]
}

// Shared returns a provider for which NewMeters always returns the same meters. Plugins that follow
// each other use one, so that each restart does not register more.
func Shared(p metric.MeterProvider) metric.MeterProvider {
	if p == nil {
		return nil
	}
	return &shared{p, sync.OnceValues(func() (*Meters, error) { return NewMeters(p) })}
}

type shared struct {
	metric.MeterProvider
	meters func() (*Meters, error)
}

// Granted counts a hold that begins.
func (m *Meters) Granted(ctx context.Context, recipe string, waited time.Duration) {
	if m == nil {
		return
	}
	of := metric.WithAttributes(attribute.String(Recipe, recipe))
	m.holds.Add(ctx, 1, of)
	m.wait.Record(ctx, waited.Seconds(), of)
	m.mu.Lock()
	_, before := m.granted[recipe]
	m.granted[recipe] = struct{}{}
	m.mu.Unlock()
	if before {
		return
	}
	for _, reason := range holdLosses {
		m.losses.Add(ctx, 0, lossOf("hold", reason, attribute.String(Recipe, recipe)))
	}
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
	m.losses.Add(context.Background(), 1, lossOf(kind, ReasonOf(reason), of...))
}

func lossOf(kind, reason string, of ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(of, attribute.String(Kind, kind), attribute.String(Reason, reason))...)
}

// reasons are the reasons of losses, in the order in which an error is matched: the specific ones
// first. The names are those of the protocol, which a test of internal/rpc/wire compares.
var reasons = []struct {
	err  error
	name string
}{
	{recipes.ErrExpired, "SESSION_EXPIRED"},
	{recipes.ErrDeadline, "SESSION_DEADLINE"},
	{recipes.ErrClosed, "SESSION_CLOSED"},
	{recipes.ErrPluginLost, "PLUGIN_LOST"},
	{recipes.ErrAuthFailed, "AUTH_FAILED"},
	{recipes.ErrNotContinued, "SESSION_NOT_CONTINUED"},
	{recipes.ErrRevoked, "REVOKED"},
	{recipes.ErrRemoved, "REMOVED"},
	{recipes.ErrReleased, "RELEASED"},
	{recipes.ErrSessionLost, "SESSION_LOST"},
	{recipes.ErrNotHeld, "NOT_HELD"},
}

// The losses that are reported as 0 before they happen. A rate over a counter that begins with 1
// does not see that one.
var (
	sessionLosses = []string{"SESSION_EXPIRED", "SESSION_DEADLINE", "PLUGIN_LOST", "AUTH_FAILED", "SESSION_NOT_CONTINUED", "SESSION_LOST"}
	holdLosses    = append([]string{"REVOKED", "REMOVED", "NOT_HELD"}, sessionLosses...)
)

// ReasonOf returns the name of the reason why a session or hold has ended.
func ReasonOf(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return "INTERNAL"
}
