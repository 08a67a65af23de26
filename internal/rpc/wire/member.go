package wire

import (
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToMembers converts members to messages, in the same order.
func ToMembers(ms []recipes.Member) []*pb.Member {
	return each(ms, func(m recipes.Member) *pb.Member {
		return &pb.Member{
			Name: m.Name, Znode: m.Znode, Token: int64(m.Token), SessionId: m.SessionID,
			Since: toTime(m.Since), Data: m.Data,
		}
	})
}

// Members converts messages to members, in the same order.
func Members(ms []*pb.Member) []recipes.Member {
	return each(ms, func(m *pb.Member) recipes.Member {
		return recipes.Member{
			Name: m.GetName(), Znode: m.GetZnode(), Token: recipes.Token(m.GetToken()), SessionID: m.GetSessionId(),
			Since: fromTime(m.GetSince()), Data: m.GetData(),
		}
	})
}

// ToTaken converts the owner of a name to a message.
func ToTaken(e *recipes.TakenError) *pb.Taken {
	return &pb.Taken{Znode: e.Znode, SessionId: e.SessionID, Since: toTime(e.Since)}
}

// taken returns the owner of the name that a call asked for, if the status has it.
func taken(s *status.Status) *recipes.TakenError {
	if t, ok := detail[*pb.Taken](s); ok {
		return &recipes.TakenError{Znode: t.GetZnode(), SessionID: t.GetSessionId(), Since: fromTime(t.GetSince())}
	}
	return nil
}

// toTime converts a time to a message; the zero time becomes nil.
func toTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// fromTime converts a message to a time.
func fromTime(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime().In(time.Local)
}
