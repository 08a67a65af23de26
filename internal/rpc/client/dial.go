package client

import (
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/telemetry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
)

// unbounded is the size of messages, as in go-plugin. What the plugin sends is
// bounded by what it read from ZooKeeper. What it accepts, it bounds itself.
const unbounded = 1<<31 - 1

// DialOptions are what a connection to a plugin needs, whatever it runs over;
// how it is secured is the caller's business. Calls are traced and measured by the
// providers that are not nil.
func DialOptions(t trace.TracerProvider, m metric.MeterProvider) []grpc.DialOption {
	h := telemetry.Client(t, m)
	options := []grpc.DialOption{
		grpc.WithStaticStreamWindowSize(wire.StreamWindow),
		grpc.WithStaticConnWindowSize(wire.ConnectionWindow),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(unbounded), grpc.MaxCallSendMsgSize(unbounded)),
		carry.DialOption(h),
	}
	if h != nil {
		options = append(options, grpc.WithStatsHandler(h))
	}
	return options
}
