package wire

import (
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToMode converts a mode to that of a message.
func ToMode(m recipes.Mode) pb.Mode {
	switch m {
	case recipes.Reading:
		return pb.Mode_MODE_READ
	case recipes.Writing:
		return pb.Mode_MODE_WRITE
	}
	return pb.Mode_MODE_UNSPECIFIED
}

// Mode converts the mode in a message; an unknown one becomes "".
func Mode(m pb.Mode) recipes.Mode {
	switch m {
	case pb.Mode_MODE_READ:
		return recipes.Reading
	case pb.Mode_MODE_WRITE:
		return recipes.Writing
	}
	return ""
}
