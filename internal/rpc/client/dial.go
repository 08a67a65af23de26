package client

import (
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/telemetry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
)

// unbounded replaces gRPC's limit on the message size, as in go-plugin. A plugin's message is
// as large as the data that it read from ZooKeeper. The plugin limits the messages that it
// accepts.
const unbounded = 1<<31 - 1

// DialOptions returns the options of a connection to a plugin, whatever its transport. The
// caller adds transport security. Providers that are not nil trace and measure the calls.
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
