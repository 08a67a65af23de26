// Package telemetry instruments the connection between host and plugin with OpenTelemetry.
// Without a provider it installs nothing, and costs nothing.
package telemetry

import (
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/metric"
	nometric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/stats"
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
