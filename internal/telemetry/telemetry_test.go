package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The counters of requests do not fall: not when a session ends, not when another process resumes
// it and counts from 0, and not when its figures cannot be read.
func TestCountersDoNotFall(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := must.Get(telemetry.NewMeters(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))(t)
	var stats recipes.Stats
	var failure error
	source := &telemetry.Source{
		Stats:     func(context.Context) (recipes.Stats, error) { return stats, failure },
		Remaining: func() time.Duration { return time.Second },
	}
	m.Opened(source)
	for _, step := range []struct {
		name                       string
		sync, reconnects, asked    int64
		do                         func()
		wantSync, wantRe, wantAsks int64
	}{
		{"first", 3, 0, 1, nil, 3, 0, 1},
		{"more", 5, 2, 2, nil, 5, 2, 2},
		{"unreadable", 9, 9, 9, func() { failure = errors.New("the plugin does not answer") }, 5, 2, 2},
		{"resumed", 1, 0, 0, func() { failure = nil }, 6, 2, 2},
		{"resumed, and as many requests", 1, 1, 1, nil, 6, 3, 3},
		{"resumed again, and only the reconnects fall", 7, 0, 1, nil, 13, 3, 4},
		{"ended", 100, 100, 100, func() { m.Lost(source, recipes.ErrClosed); m.Forget(source); m.Forget(source) }, 13, 3, 4},
		{"read after the end", 100, 100, 100, func() { m.Read(t.Context(), source) }, 13, 3, 4},
	} {
		stats = recipes.Stats{ByKind: map[string]int64{"sync": step.sync}, Reconnects: step.reconnects, Asked: step.asked}
		if step.do != nil {
			step.do()
		}
		got := counters(t, reader)
		if got[telemetry.Requests] != step.wantSync || got[telemetry.Reconnects] != step.wantRe || got[telemetry.Asked] != step.wantAsks {
			t.Errorf("%s: %v", step.name, got)
		}
	}
}

func counters(t *testing.T, r sdkmetric.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	must.Do(t, r.Collect(t.Context(), &all))
	got := map[string]int64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if data, ok := m.Data.(metricdata.Sum[int64]); ok {
			for _, p := range data.DataPoints {
				got[m.Name] += p.Value
			}
		}
	}
	return got
}

// A plugin that does not answer delays a collection by a second at most, however many sessions
// there are.
func TestASourceThatHangsDelaysACollectionOnce(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := must.Get(telemetry.NewMeters(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))(t)
	hung := 0
	for range 50 {
		m.Opened(&telemetry.Source{Remaining: func() time.Duration { return -time.Second }, Stats: func(ctx context.Context) (recipes.Stats, error) {
			if ctx.Err() == nil {
				hung++
			}
			<-ctx.Done()
			return recipes.Stats{}, ctx.Err()
		}})
	}
	ended := &telemetry.Source{Stats: func(context.Context) (recipes.Stats, error) { return recipes.Stats{}, nil }}
	m.Opened(ended)
	m.Lost(ended, recipes.ErrExpired) // the session has no deadline now, so Remaining is not called
	if got := counters(t, reader); got[telemetry.Sessions] != 50 || hung != 1 {
		t.Errorf("%v; %d sources have waited", got, hung)
	}
}

// A session that is closed is read once more. The read ends with the caller's context, even
// if a collection is reading the session, and waits for no other session.
func TestAReadWaitsForNoOtherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := must.Get(telemetry.NewMeters(sdkmetric.NewMeterProvider()))(t)
		hung := &telemetry.Source{Stats: func(ctx context.Context) (recipes.Stats, error) { <-ctx.Done(); return recipes.Stats{}, ctx.Err() }}
		quick := &telemetry.Source{Stats: func(context.Context) (recipes.Stats, error) { return recipes.Stats{}, nil }}
		m.Opened(hung)
		m.Opened(quick)
		go m.Read(t.Context(), hung)
		synctest.Wait()
		for source, patience := range map[*telemetry.Source]time.Duration{quick: 0, hung: 100 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			began := time.Now()
			if m.Read(ctx, source); time.Since(began) != patience {
				t.Errorf("it has waited %v; want %v", time.Since(began), patience)
			}
		}
	})
}

func TestWithoutAProviderThereAreNoMeters(t *testing.T) {
	m := must.Get(telemetry.NewMeters(nil))(t)
	allocated := testing.AllocsPerRun(100, func() {
		m.Granted(t.Context(), "lock", time.Second)
		m.Ended("lock", recipes.ErrRemoved)
		m.Read(t.Context(), nil)
	})
	if m != nil || allocated != 0 {
		t.Errorf("%v; %v allocations", m, allocated)
	}
}
