package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToQueue converts a queue's path and configuration to a message.
func ToQueue(path string, priority bool, c recipes.QueueConfig) *pb.QueueRef {
	return &pb.QueueRef{
		Path: path, Priority: priority,
		Ephemeral: c.Ephemeral, Capacity: int32(c.Capacity), MaxDeliveries: int32(c.MaxDeliveries), Dialect: nameOf(c.Dialect),
	}
}

// QueueConfig returns the configuration in a message.
func QueueConfig(q *pb.QueueRef) (recipes.QueueConfig, error) {
	dialect, err := Dialect(q.GetDialect())
	return recipes.QueueConfig{
		Ephemeral: q.GetEphemeral(), Capacity: int(q.GetCapacity()), MaxDeliveries: int(q.GetMaxDeliveries()), Dialect: dialect,
	}, err
}

// ToElement converts an element to a message.
func ToElement(e recipes.Element) *pb.Element {
	return &pb.Element{Id: string(e.ID), Priority: int32(e.Priority), Data: e.Data, Put: toTime(e.Put)}
}

// Element converts a message to an element; nil is the zero Element.
func Element(e *pb.Element) recipes.Element {
	return recipes.Element{ID: recipes.ElementID(e.GetId()), Priority: int(e.GetPriority()), Data: e.GetData(), Put: fromTime(e.GetPut())}
}

// ToElements converts elements to messages, in the same order.
func ToElements(es []recipes.Element) []*pb.Element { return each(es, ToElement) }

// Elements converts messages to elements, in the same order.
func Elements(es []*pb.Element) []recipes.Element { return each(es, Element) }

// ToElementIDs makes names.
func ToElementIDs(ids []recipes.ElementID) []string {
	return each(ids, func(id recipes.ElementID) string { return string(id) })
}

// ElementIDs reads n names. A missing name is empty.
func ElementIDs(names []string, n int) []recipes.ElementID {
	out := make([]recipes.ElementID, n)
	for i, name := range names[:min(n, len(names))] {
		out[i] = recipes.ElementID(name)
	}
	return out
}
