package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToEntry makes a message.
func ToEntry(e recipes.Entry) *pb.Entry {
	return &pb.Entry{Key: e.Key, Value: e.Value, Revision: int64(e.Revision), Modified: toTime(e.Modified), Unset: e.Unset}
}

// Entry reads a message; nil is None.
func Entry(e *pb.Entry) recipes.Entry {
	return recipes.Entry{
		Key: e.GetKey(), Value: e.GetValue(), Revision: recipes.Revision(e.GetRevision()), Modified: fromTime(e.GetModified()), Unset: e.GetUnset(),
	}
}

// ToEntries makes messages, in the same order.
func ToEntries(es []recipes.Entry) []*pb.Entry { return each(es, ToEntry) }

// Entries reads messages, in the same order.
func Entries(es []*pb.Entry) []recipes.Entry { return each(es, Entry) }
