package zookeeper

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// WithTelemetry returns [Open] for sessions that report metrics to p: open sessions, holds,
// waits, losses by reason, grants that asked the leader, requests by operation, reconnects, and
// the time until the deadline. docs/operating.md lists their names and units. It fails only if p
// refuses an instrument.
//
// Call it once for a provider, and open all sessions by the result. The figures of requests are
// those of Session.Stats, read when p collects. No request is added, and without WithTelemetry
// nothing is measured.
//
// A session that a plugin serves is reported by its host, if host.Config has a MeterProvider.
// WithTelemetry does not report it a second time.
func WithTelemetry(p metric.MeterProvider) (recipes.Opener, error) {
	return Dialer(nil).WithTelemetry(p)
}

// WithTelemetry is [WithTelemetry] with connections of this Dialer.
func (d Dialer) WithTelemetry(p metric.MeterProvider) (recipes.Opener, error) {
	meters, err := telemetry.NewMeters(p)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		opened, err := d.Open(ctx, cfg)
		if err != nil || meters == nil || telemetry.IsServed(ctx) {
			return opened, err
		}
		return measure(opened.(zkSession), meters), nil
	}, nil
}

// measuredSession reports the grants of its recipes.
type measuredSession struct {
	zkSession
	meters *telemetry.Meters
}

func measure(s zkSession, m *telemetry.Meters) recipes.Client {
	source := &telemetry.Source{Stats: s.Stats, Remaining: s.Session.Remaining}
	m.Opened(source)
	s.Notify(func(e recipes.Event) {
		if e.State == recipes.Lost {
			m.Lost(source, e.Reason)
		}
	})
	s.OnEnd(func() {
		m.Read(context.Background(), source)
		m.Forget(source)
	})
	return measuredSession{s, m}
}

// asks reports the grants of one recipe.
type asks struct {
	recipe string // the name of its capability
	meters *telemetry.Meters
}

// ask calls call, which asks for a grant. It reports the grant and its end.
func ask[G recipes.Grant](ctx context.Context, a asks, call func(context.Context) (G, error)) (G, error) {
	asked := time.Now()
	grant, err := call(ctx)
	if err == nil {
		a.meters.Granted(ctx, a.recipe, time.Since(asked))
		any(grant).(interface{ OnEnd(func(error)) }).OnEnd(func(reason error) { a.meters.Ended(a.recipe, reason) })
	}
	return grant, err
}

// measured returns the recipe that with makes of r, unless err is the error of opening r.
func measured[R any](s measuredSession, recipe string, r R, err error, with func(R, asks) R) (R, error) {
	if err != nil {
		return r, err
	}
	return with(r, asks{recipe, s.meters}), nil
}
