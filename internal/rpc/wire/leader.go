package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToLeader converts a leader to a message. Without a leader it has no contender.
func ToLeader(l recipes.Leader) *pb.Leader {
	if l.None() {
		return &pb.Leader{}
	}
	return &pb.Leader{
		Contender: ToContender(l.Contender), Acknowledged: l.Acknowledged, Acknowledgement: l.Acknowledgement,
	}
}

// Leader converts a message to a leader.
func Leader(l *pb.Leader) recipes.Leader {
	if l.GetContender() == nil {
		return recipes.Leader{}
	}
	return recipes.Leader{
		Contender: Contender(l.GetContender()), Acknowledged: l.GetAcknowledged(), Acknowledgement: l.GetAcknowledgement(),
	}
}
