package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToState converts a state to that of a message.
func ToState(s recipes.State) pb.State {
	switch s {
	case recipes.Connected:
		return pb.State_STATE_CONNECTED
	case recipes.Suspended:
		return pb.State_STATE_SUSPENDED
	case recipes.Lost:
		return pb.State_STATE_LOST
	}
	return pb.State_STATE_UNSPECIFIED
}

// State converts the state in a message. An unknown state becomes Suspended: whatever it
// means, it does not say that a server answers or that the session has ended.
func State(s pb.State) recipes.State {
	switch s {
	case pb.State_STATE_CONNECTED:
		return recipes.Connected
	case pb.State_STATE_LOST:
		return recipes.Lost
	}
	return recipes.Suspended
}
