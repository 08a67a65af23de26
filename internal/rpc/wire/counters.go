package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToCounters makes a message.
func ToCounters(c recipes.Stats) *pb.CountersResponse {
	return &pb.CountersResponse{
		Reads: c.Reads, Writes: c.Writes, Pings: c.Pings, WatchEvents: c.WatchEvents,
		RequestBytes: c.RequestBytes, ResponseBytes: c.ResponseBytes,
		Reconnects: c.Reconnects, Handoffs: c.Handoffs, Fallbacks: c.Fallbacks, ByKind: c.ByKind,
	}
}

// Counters reads a message.
func Counters(c *pb.CountersResponse) recipes.Stats {
	return recipes.Stats{
		Reads: c.GetReads(), Writes: c.GetWrites(), Pings: c.GetPings(), WatchEvents: c.GetWatchEvents(),
		RequestBytes: c.GetRequestBytes(), ResponseBytes: c.GetResponseBytes(),
		Reconnects: c.GetReconnects(), Handoffs: c.GetHandoffs(), Fallbacks: c.GetFallbacks(), ByKind: c.GetByKind(),
	}
}
