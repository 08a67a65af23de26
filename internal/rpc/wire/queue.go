package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToQueue makes a message of a queue's name and configuration.
func ToQueue(path string, priority bool, c recipes.QueueConfig) *pb.QueueRef {
	return &pb.QueueRef{
		Path: path, Priority: priority,
		Ephemeral: c.Ephemeral, Capacity: int32(c.Capacity), MaxDeliveries: int32(c.MaxDeliveries), Dialect: nameOf(c.Dialect),
	}
}

// QueueConfig reads the configuration of a message.
func QueueConfig(q *pb.QueueRef) (recipes.QueueConfig, error) {
	dialect, err := Dialect(q.GetDialect())
	return recipes.QueueConfig{
		Ephemeral: q.GetEphemeral(), Capacity: int(q.GetCapacity()), MaxDeliveries: int(q.GetMaxDeliveries()), Dialect: dialect,
	}, err
}

// ToElement makes a message.
func ToElement(e recipes.Element) *pb.Element {
	out := &pb.Element{Id: string(e.ID), Priority: int32(e.Priority), Data: e.Data}
	if !e.Put.IsZero() {
		out.Put = timestamppb.New(e.Put)
	}
	return out
}

// Element reads a message; nil is the zero Element.
func Element(e *pb.Element) recipes.Element {
	out := recipes.Element{ID: recipes.ElementID(e.GetId()), Priority: int(e.GetPriority()), Data: e.GetData()}
	if e.GetPut() != nil {
		out.Put = e.GetPut().AsTime().In(time.Local)
	}
	return out
}

// ToElements makes messages, in the same order.
func ToElements(es []recipes.Element) []*pb.Element {
	out := make([]*pb.Element, len(es))
	for i, e := range es {
		out[i] = ToElement(e)
	}
	return out
}

// Elements reads messages, in the same order.
func Elements(es []*pb.Element) []recipes.Element {
	out := make([]recipes.Element, len(es))
	for i, e := range es {
		out[i] = Element(e)
	}
	return out
}

// ToElementIDs makes names.
func ToElementIDs(ids []recipes.ElementID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

// ElementIDs reads n names. A name that is missing is empty.
func ElementIDs(names []string, n int) []recipes.ElementID {
	out := make([]recipes.ElementID, n)
	for i, name := range names[:min(n, len(names))] {
		out[i] = recipes.ElementID(name)
	}
	return out
}
