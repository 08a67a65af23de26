package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToPriorityContenders makes messages, in the same order.
func ToPriorityContenders(cs []recipes.PriorityContender) []*pb.PriorityContender {
	out := make([]*pb.PriorityContender, len(cs))
	for i, c := range cs {
		out[i] = &pb.PriorityContender{
			Contender: ToSharedContender(c.SharedContender), Priority: int32(c.Priority), Holds: c.Holds, Heir: c.Heir,
		}
	}
	return out
}

// PriorityContenders reads messages, in the same order.
func PriorityContenders(cs []*pb.PriorityContender) []recipes.PriorityContender {
	out := make([]recipes.PriorityContender, len(cs))
	for i, c := range cs {
		out[i] = recipes.PriorityContender{
			SharedContender: SharedContender(c.GetContender()), Priority: int(c.GetPriority()), Holds: c.GetHolds(), Heir: c.GetHeir(),
		}
	}
	return out
}
