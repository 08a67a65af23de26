package plugin

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/version"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Option is what the author of a plugin can choose: [Limits], [Resume] and [Telemetry]. Of two
// options of one type the later counts.
type Option interface {
	apply(*server.Config) error
}

// Limits bound what hosts can have of a plugin at a time. A field that is 0 has its
// default, which is far above what an application needs: the limits are for an
// application that forgets to give back.
//
// What exceeds a limit is refused with recipes.ErrLimit, and a message that is too
// large with recipes.ErrTooLarge; what stands is not touched.
type Limits struct {
	// Sessions is the number of sessions of the plugin, of all its hosts together.
	// The default is 16,384.
	Sessions int
	// Grants is the number of grants that one session has or waits for: holds,
	// leaderships, memberships, deliveries. The default is 65,536.
	Grants int
	// Watches is the number of streams that one session has open besides its own,
	// such as Observe. The default is 16,384.
	Watches int
	// Message is the size of one message from a host, in bytes. The default is 64
	// MiB. ZooKeeper's own limit is 1 MiB, unless it is configured otherwise.
	Message int
}

// DefaultLimits returns what Limits without any field stands for.
func DefaultLimits() Limits {
	return Limits{Sessions: server.MaxSessions, Grants: server.MaxGrants, Watches: server.MaxWatches, Message: server.MaxMessage}
}

// Validate reports a field that is negative.
func (l Limits) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"Sessions", l.Sessions}, {"Grants", l.Grants}, {"Watches", l.Watches}, {"Message", l.Message}} {
		if f.value < 0 {
			return fmt.Errorf("plugin.Limits: %s is %d; it must be positive, or 0 for the default", f.name, f.value)
		}
	}
	return nil
}

func (l Limits) apply(cfg *server.Config) error {
	cfg.Limits = server.Limits(l)
	return l.Validate()
}

// Telemetry is where the spans and metrics of gRPC's OpenTelemetry instrumentation
// (otelgrpc) go. A call's span has the host's for its parent, if the host traces too
// (host.Config). A provider that is nil gets nothing, and costs nothing.
//
// A plugin exports nothing by itself. Its author gives providers of an SDK here,
// flushes them when Serve has returned, and keeps their output off stdout, which is
// the host's. The host counts what sessions hold, wait for and lose: it also sees what
// a dead plugin cannot tell.
type Telemetry struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
}

func (t Telemetry) apply(cfg *server.Config) error {
	cfg.TracerProvider, cfg.MeterProvider = t.TracerProvider, t.MeterProvider
	return nil
}

// Resume has a plugin resume the sessions of another one, so that a session outlives its
// plugin: zookeeper.Resume does that. Without it a session ends with its plugin. The host
// sees to it that the other plugin does not serve the session any more.
type Resume func(ctx context.Context, cfg recipes.SessionConfig, ticket []byte, contact time.Time) (recipes.Client, error)

func (r Resume) apply(cfg *server.Config) error {
	cfg.Resume = r
	return nil
}

// configure returns the configuration of a server of sessions that open opens.
func configure(open recipes.Opener, options []Option) (server.Config, error) {
	cfg := server.Config{Open: open, Version: version.String(), Build: version.Build(), Logger: logger()}
	for _, o := range options {
		if err := o.apply(&cfg); err != nil {
			return server.Config{}, err
		}
	}
	return cfg, nil
}
