package link_test

import (
	"context"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// The plugin's library and the host report to one provider, and each session, hold and request
// is counted once. What only the plugin knows reaches the host's metrics.
func TestASessionIsMeasuredOnce(t *testing.T) {
	zk := zktest.Embedded(t)
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	opener := must.Get(zookeeper.WithTelemetry(provider))(t)
	l := newLinkOver(t, func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		cfg.Servers = []string{zk.Addr()}
		return opener(ctx, cfg)
	})
	l.client.Measure(must.Get(telemetry.NewMeters(provider))(t))
	s := l.open(t, 0)
	h := must.Get(must.Get(s.Lock("/l", recipes.LockConfig{}))(t).Acquire(ctx(t)))(t)
	sums := func() (map[string]int64, time.Duration) {
		var all metricdata.ResourceMetrics
		must.Do(t, reader.Collect(ctx(t), &all))
		sums, left := map[string]int64{}, time.Duration(0)
		for _, m := range all.ScopeMetrics[0].Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					sums[m.Name] += p.Value
				}
			case metricdata.Gauge[float64]:
				left = time.Duration(data.DataPoints[0].Value * float64(time.Second))
			}
		}
		return sums, left
	}
	for { // until no ping was sent between the two readings
		before := must.Get(s.Stats(ctx(t)))(t)
		got, left := sums()
		requests, after := int64(0), must.Get(s.Stats(ctx(t)))(t)
		for kind, n := range before.ByKind {
			requests += n
			after.ByKind[kind] -= n
		}
		if after.ByKind["ping"] > 0 || after.ByKind["sync"] > 0 {
			continue
		}
		if got[telemetry.Sessions] != 1 || got[telemetry.Holds] != 1 || got[telemetry.Requests] != requests || requests == 0 || got[telemetry.Asked] != before.Asked {
			t.Errorf("%v, and the session has sent %v", got, before)
		}
		if left < s.Timeout()/4 || left > s.Timeout() {
			t.Errorf("%v are left until the deadline, of %v", left, s.Timeout())
		}
		break
	}
	must.Do(t, h.Release(ctx(t)))
	last := int64(0)
	for _, n := range must.Get(s.Stats(ctx(t)))(t).ByKind {
		last += n
	}
	must.Do(t, s.Close(ctx(t)))
	got, _ := sums()
	if got[telemetry.Sessions] != 0 || got[telemetry.Holds] != 0 || got[telemetry.Losses] != 0 || got[telemetry.Requests] < last {
		t.Errorf("closed: %v, and the session had sent %v", got, last)
	}
}
