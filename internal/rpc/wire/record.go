package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToRecord converts a record to a message.
func ToRecord(r recipes.Record) *pb.Record {
	return &pb.Record{
		Name: r.Name, Znode: r.Znode, Token: int64(r.Token), SessionId: r.SessionID,
		Since: toTime(r.Since), Data: r.Data, Unreadable: r.Unreadable,
	}
}

// Record converts a message to a record; nil is None.
func Record(r *pb.Record) recipes.Record {
	return recipes.Record{
		Name: r.GetName(), Znode: r.GetZnode(), Token: recipes.Token(r.GetToken()), SessionID: r.GetSessionId(),
		Since: fromTime(r.GetSince()), Data: r.GetData(), Unreadable: r.GetUnreadable(),
	}
}

// ToRecords converts records to messages, in the same order.
func ToRecords(rs []recipes.Record) []*pb.Record { return each(rs, ToRecord) }

// Records converts messages to records, in the same order.
func Records(rs []*pb.Record) []recipes.Record { return each(rs, Record) }
