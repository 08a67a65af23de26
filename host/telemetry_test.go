package host_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// serveTraced is a plugin that reports its spans.
func serveTraced() {
	conn := report("traced plugin")
	spans := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter(func(s sdktrace.ReadOnlySpan) {
		fmt.Fprintln(conn, s.Name(), s.SpanContext().TraceID(), s.Parent().SpanID())
	})))
	plugin.Serve(opener(nil), plugin.Telemetry{TracerProvider: spans})
}

// exporter is an sdktrace.SpanExporter.
type exporter func(sdktrace.ReadOnlySpan)

func (e exporter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		e(s)
	}
	return nil
}

func (e exporter) Shutdown(context.Context) error { return nil }

const acquireSpan = "zkrecipes.v1.GrantService/Acquire"

// TestTraceCrossesTheProcesses: the application's span is the parent of the host's, which is
// the parent of the plugin's.
func TestTraceCrossesTheProcesses(t *testing.T) {
	r := listen(t)
	exported := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported))
	cfg := config(t, "traced plugin", r.env())
	cfg.TracerProvider = provider
	p := launch(t, cfg)
	traced := r.accept(t, "traced plugin")

	l := must.Get(open(t, p, time.Minute).Lock("/l", recipes.LockConfig{}))(t)
	working, application := provider.Tracer("application").Start(ctx(t), "work")
	must.Get(l.Acquire(working))(t)
	application.End()

	var call tracetest.SpanStub
	for _, s := range exported.GetSpans() {
		if s.Name == acquireSpan {
			call = s
		}
	}
	if call.Parent.SpanID() != application.SpanContext().SpanID() || !call.SpanContext.IsValid() {
		t.Errorf("the host's span is %+v, its parent %v", call.SpanContext, call.Parent)
	}
	want := fmt.Sprint(acquireSpan, " ", application.SpanContext().TraceID(), " ", call.SpanContext.SpanID())
	for line := traced.line(t); line != want; line = traced.line(t) { // line fails at the end
		if strings.HasPrefix(line, acquireSpan) {
			t.Fatalf("the plugin's span is %q; want %q", line, want)
		}
	}
}

// TestMetrics checks the metrics of sessions and holds until the plugin crashes.
func TestMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	cfg := config(t, "plugin")
	cfg.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	p := launch(t, cfg)
	s, quiet := open(t, p, time.Minute), open(t, p, time.Minute)
	h := acquire(t, s)
	l := must.Get(quiet.Lock("/m", recipes.LockConfig{}))(t)
	must.Get(l.Acquire(ctx(t)))(t)
	held := read(t, reader)
	must.Do(t, h.Release(ctx(t)))
	released := read(t, reader)
	must.Do(t, quiet.Close(ctx(t)))
	acquire(t, s)
	crash(t, p.PID())
	closes(t, "Exited", p.Exited())
	crashed := read(t, reader)

	const (
		locks        = telemetry.Holds + " recipe=lock"
		waits        = telemetry.Wait + " recipe=lock"
		sessionsLost = telemetry.Losses + " kind=session,reason=PLUGIN_LOST"
		holdsLost    = telemetry.Losses + " kind=hold,reason=PLUGIN_LOST,recipe=lock"
	)
	for _, test := range []struct {
		when string
		got  map[string]int64
		want map[string]int64
	}{
		{"held", held, map[string]int64{telemetry.Sessions: 2, locks: 2, waits: 2, sessionsLost: 0, holdsLost: 0}},
		{"released", released, map[string]int64{telemetry.Sessions: 2, locks: 1, waits: 2, sessionsLost: 0, holdsLost: 0}},
		{"crashed", crashed, map[string]int64{telemetry.Sessions: 0, locks: 0, waits: 3, sessionsLost: 1, holdsLost: 1}},
	} {
		for name, want := range test.want {
			if got := test.got[name]; got != want {
				t.Errorf("%s: %s is %d; want %d; all: %v", test.when, name, got, want, test.got)
			}
		}
	}
}

// read returns the sums, and the numbers of values of the histograms, by name and attributes.
// It ignores the metrics of gRPC.
func read(t *testing.T, r sdkmetric.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	must.Do(t, r.Collect(t.Context(), &all))
	values := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		if scope.Scope.Name != telemetry.Scope {
			continue
		}
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					values[name(m.Name, p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					values[name(m.Name, p.Attributes)] = int64(p.Count)
				}
			}
		}
	}
	return values
}

func name(metric string, of attribute.Set) string {
	return strings.TrimSuffix(metric+" "+of.Encoded(attribute.DefaultEncoder()), " ")
}
