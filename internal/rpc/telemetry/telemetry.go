// Package telemetry tells OpenTelemetry what goes over the connection between
// host and plugin. Where no provider is given nothing is installed: it costs
// nothing.
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

// Server returns what traces and measures the calls of a gRPC server; nil if nobody
// wants that.
func Server(t trace.TracerProvider, m metric.MeterProvider) stats.Handler {
	if t == nil && m == nil {
		return nil
	}
	return otelgrpc.NewServerHandler(options(t, m)...)
}

// Client returns the same for a connection.
func Client(t trace.TracerProvider, m metric.MeterProvider) stats.Handler {
	if t == nil && m == nil {
		return nil
	}
	return otelgrpc.NewClientHandler(options(t, m)...)
}

// options leaves nothing to OpenTelemetry's globals, which belong to the
// application: where a provider is not given, nothing is recorded. Both ends are
// ours, so the context goes in W3C's form, whatever the application uses elsewhere.
func options(t trace.TracerProvider, m metric.MeterProvider) []otelgrpc.Option {
	if t == nil {
		t = notrace.NewTracerProvider()
	}
	if m == nil {
		m = nometric.NewMeterProvider()
	}
	return []otelgrpc.Option{
		otelgrpc.WithTracerProvider(t),
		otelgrpc.WithMeterProvider(m),
		otelgrpc.WithPropagators(propagation.TraceContext{}),
	}
}
