package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToContender makes a message.
func ToContender(c recipes.Contender) *pb.Contender {
	out := &pb.Contender{
		Znode: c.Znode, Sequence: c.Sequence, Token: int64(c.Token), SessionId: c.SessionID, Data: c.Data,
	}
	if !c.Since.IsZero() {
		out.Since = timestamppb.New(c.Since)
	}
	return out
}

// Contender reads a message; nil is the zero Contender.
func Contender(c *pb.Contender) recipes.Contender {
	out := recipes.Contender{
		Znode:     c.GetZnode(),
		Sequence:  c.GetSequence(),
		Token:     recipes.Token(c.GetToken()),
		SessionID: c.GetSessionId(),
		Data:      c.GetData(),
	}
	if c.GetSince() != nil {
		out.Since = c.GetSince().AsTime().In(time.Local)
	}
	return out
}

// ToContenders makes messages, in the same order.
func ToContenders(cs []recipes.Contender) []*pb.Contender {
	out := make([]*pb.Contender, len(cs))
	for i, c := range cs {
		out[i] = ToContender(c)
	}
	return out
}

// Contenders reads messages, in the same order.
func Contenders(cs []*pb.Contender) []recipes.Contender {
	out := make([]recipes.Contender, len(cs))
	for i, c := range cs {
		out[i] = Contender(c)
	}
	return out
}

// ToPlace makes a message.
func ToPlace(p recipes.Place) *pb.Place {
	return &pb.Place{Znode: p.Znode, Position: int32(p.Position)}
}

// Place reads a message.
func Place(p *pb.Place) recipes.Place {
	return recipes.Place{Znode: p.GetZnode(), Position: int(p.GetPosition())}
}
