package client

import (
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
)

// unbounded is the size of messages, as in go-plugin. What the plugin sends is
// bounded by what it read from ZooKeeper. What it accepts, it bounds itself.
const unbounded = 1<<31 - 1

// DialOptions are what a connection to a plugin needs, whatever it runs over;
// how it is secured is the caller's business.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithStaticStreamWindowSize(wire.StreamWindow),
		grpc.WithStaticConnWindowSize(wire.ConnectionWindow),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(unbounded), grpc.MaxCallSendMsgSize(unbounded)),
	}
}
