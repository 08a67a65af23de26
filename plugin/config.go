package plugin

import (
	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Limits bound what hosts can have of a plugin at a time.
type Limits = server.Limits

// Config is what the author of a plugin can choose. The zero value is what
// [Serve] uses.
type Config struct {
	// Limits bound what hosts can have.
	Limits Limits

	// TracerProvider and MeterProvider get the spans and metrics of gRPC's
	// OpenTelemetry instrumentation (go.opentelemetry.io/contrib's otelgrpc): a
	// span for each call, whose parent is the host's, if that traces too (see
	// host.Config). nil is none, and costs nothing.
	//
	// A plugin exports nothing by itself, zkrecipes-plugin neither: who wants
	// that gives providers of an SDK here, flushes them when ServeWith has
	// returned, and keeps their output off stdout, which is the host's. What
	// sessions hold, wait and lose is counted in the host, which also sees what
	// a dead plugin cannot tell.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
}

// server returns what serves sessions that open opens.
func (c Config) server(open recipes.Opener, logger hclog.Logger) *server.Server {
	return server.New(server.Config{
		Open: open, Version: Version(), Logger: logger, Limits: c.Limits,
		TracerProvider: c.TracerProvider, MeterProvider: c.MeterProvider,
	})
}
