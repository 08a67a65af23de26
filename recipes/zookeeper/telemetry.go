package zookeeper

import (
	"context"

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
		opened.(zkSession).Report(meters)
		return opened, nil
	}, nil
}
