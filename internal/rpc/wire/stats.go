package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToStats converts statistics to a message.
func ToStats(c recipes.Stats) *pb.StatsResponse {
	return &pb.StatsResponse{
		Reads: c.Reads, Writes: c.Writes, Pings: c.Pings, WatchEvents: c.WatchEvents,
		RequestBytes: c.RequestBytes, ResponseBytes: c.ResponseBytes,
		Reconnects: c.Reconnects, Handoffs: c.Handoffs, Fallbacks: c.Fallbacks, Asked: c.Asked, ByKind: c.ByKind,
	}
}

// Stats converts a message to statistics.
func Stats(c *pb.StatsResponse) recipes.Stats {
	return recipes.Stats{
		Reads: c.GetReads(), Writes: c.GetWrites(), Pings: c.GetPings(), WatchEvents: c.GetWatchEvents(),
		RequestBytes: c.GetRequestBytes(), ResponseBytes: c.GetResponseBytes(),
		Reconnects: c.GetReconnects(), Handoffs: c.GetHandoffs(), Fallbacks: c.GetFallbacks(), Asked: c.GetAsked(), ByKind: c.GetByKind(),
	}
}
