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

// Option is an option of [Serve]: [Limits], [Resume] or [Telemetry]. Of two options of one
// type the later counts.
type Option interface {
	apply(*server.Config) error
}

// Limits bound the sessions, grants and streams that hosts have in a plugin at a time, and the
// size of a message. A field that is 0 selects its default, which is far above the needs of an
// application: the limits protect against an application that forgets to release.
//
// A request beyond a limit is refused with recipes.ErrLimit, and a message that is too large
// with recipes.ErrTooLarge. Existing sessions, grants and streams are not affected.
type Limits struct {
	// Sessions bounds the sessions of the plugin, for all its hosts together. The default is
	// 16,384.
	Sessions int
	// Grants bounds the grants that one session has or waits for: holds, leaderships,
	// memberships, deliveries. The default is 65,536.
	Grants int
	// Watches bounds the streams that one session has open besides its own, such as Observe.
	// The default is 16,384.
	Watches int
	// Message bounds one message from a host, in bytes. The default is 64 MiB. ZooKeeper's
	// own limit is 1 MiB, unless it is configured otherwise.
	Message int
}

// Normalize returns the limits with defaults filled in. The error names a field that is
// negative.
func (l Limits) Normalize() (Limits, error) {
	for _, f := range []struct {
		name  string
		value int
	}{{"Sessions", l.Sessions}, {"Grants", l.Grants}, {"Watches", l.Watches}, {"Message", l.Message}} {
		if f.value < 0 {
			return Limits{}, fmt.Errorf("plugin.Limits: %s is %d; it must be positive, or 0 for the default", f.name, f.value)
		}
	}
	return Limits(server.Limits(l).Normalize()), nil
}

func (l Limits) apply(cfg *server.Config) error {
	l, err := l.Normalize()
	cfg.Limits = server.Limits(l)
	return err
}

// Telemetry sets the providers for the spans and metrics of gRPC's OpenTelemetry
// instrumentation (otelgrpc). The parent of a call's span is the host's span, if the host
// traces too (host.Config). A nil provider costs nothing.
//
// A plugin exports nothing by itself. Its author passes providers of an SDK, flushes them
// when Serve has returned, and keeps their output off stdout, which belongs to the host. The
// host counts what sessions hold, wait for and lose: it also sees what a dead plugin cannot
// report.
type Telemetry struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
}

func (t Telemetry) apply(cfg *server.Config) error {
	cfg.TracerProvider, cfg.MeterProvider = t.TracerProvider, t.MeterProvider
	return nil
}

// Resume lets a plugin resume the sessions of another one, so that a session outlives its
// plugin. zookeeper.Resume implements it. Without Resume a session ends with its plugin. The
// host ensures that the other plugin no longer serves the session.
type Resume func(ctx context.Context, cfg recipes.SessionConfig, ticket []byte, contact time.Time) (recipes.Client, error)

func (r Resume) apply(cfg *server.Config) error {
	cfg.Resume = r
	return nil
}

func configure(open recipes.Opener, options []Option) (server.Config, error) {
	cfg := server.Config{Open: open, Version: version.String(), Build: version.Build(), Logger: logger()}
	for _, o := range options {
		if err := o.apply(&cfg); err != nil {
			return server.Config{}, err
		}
	}
	return cfg, nil
}
