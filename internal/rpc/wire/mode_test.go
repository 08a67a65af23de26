package wire_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

func TestModesThatAreNotKnown(t *testing.T) {
	if m := wire.Mode(pb.Mode(99)); m != "" {
		t.Errorf("mode %q", m)
	}
	if m := wire.ToMode("append"); m != pb.Mode_MODE_UNSPECIFIED {
		t.Errorf("mode %v", m)
	}
}
