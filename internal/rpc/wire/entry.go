package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToEntry converts an entry to a message.
func ToEntry(e recipes.Entry) *pb.Entry {
	return &pb.Entry{Key: e.Key, Value: e.Value, Revision: int64(e.Revision), Modified: toTime(e.Modified), Unset: e.Unset}
}

// Entry converts a message to an entry; nil is None.
func Entry(e *pb.Entry) recipes.Entry {
	return recipes.Entry{
		Key: e.GetKey(), Value: e.GetValue(), Revision: recipes.Revision(e.GetRevision()), Modified: fromTime(e.GetModified()), Unset: e.GetUnset(),
	}
}

// ToEntries converts entries to messages, in the same order.
func ToEntries(es []recipes.Entry) []*pb.Entry { return each(es, ToEntry) }

// Entries converts messages to entries, in the same order.
func Entries(es []*pb.Entry) []recipes.Entry { return each(es, Entry) }
