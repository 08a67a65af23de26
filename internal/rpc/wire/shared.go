package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToMode makes a message's mode.
func ToMode(m recipes.Mode) pb.Mode {
	switch m {
	case recipes.Reading:
		return pb.Mode_MODE_READ
	case recipes.Writing:
		return pb.Mode_MODE_WRITE
	}
	return pb.Mode_MODE_UNSPECIFIED
}

// Mode reads a message's mode; "" is one that is not known.
func Mode(m pb.Mode) recipes.Mode {
	switch m {
	case pb.Mode_MODE_READ:
		return recipes.Reading
	case pb.Mode_MODE_WRITE:
		return recipes.Writing
	}
	return ""
}

// ToSharedContender makes a message.
func ToSharedContender(c recipes.SharedContender) *pb.SharedContender {
	return &pb.SharedContender{
		Contender: ToContender(c.Contender), Mode: ToMode(c.Mode), Downgraded: c.Downgraded,
		Revocable: c.Revocable, Grace: ToDuration(c.Grace), Revoked: c.Revoked,
	}
}

// SharedContender reads a message; nil is the zero SharedContender.
func SharedContender(c *pb.SharedContender) recipes.SharedContender {
	return recipes.SharedContender{
		Contender: Contender(c.GetContender()), Mode: Mode(c.GetMode()), Downgraded: c.GetDowngraded(),
		Revocable: c.GetRevocable(), Grace: c.GetGrace().AsDuration(), Revoked: c.GetRevoked(),
	}
}

// ToSharedContenders makes messages, in the same order.
func ToSharedContenders(cs []recipes.SharedContender) []*pb.SharedContender {
	out := make([]*pb.SharedContender, len(cs))
	for i, c := range cs {
		out[i] = ToSharedContender(c)
	}
	return out
}

// SharedContenders reads messages, in the same order.
func SharedContenders(cs []*pb.SharedContender) []recipes.SharedContender {
	out := make([]recipes.SharedContender, len(cs))
	for i, c := range cs {
		out[i] = SharedContender(c)
	}
	return out
}
