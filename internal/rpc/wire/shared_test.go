package wire_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestSharedContendersSurviveTheWire(t *testing.T) {
	shared := []recipes.SharedContender{
		{Mode: recipes.Reading},
		{
			Contender: recipes.Contender{Znode: "/a/write-0000000001", Sequence: -1, Token: 7, SessionID: -8, Data: []byte("me")},
			Mode:      recipes.Writing, Downgraded: true, Revocable: true, Grace: 1500 * time.Millisecond, Revoked: true,
		},
	}
	if got := wire.SharedContenders(wire.ToSharedContenders(shared)); !reflect.DeepEqual(got, shared) {
		t.Errorf("%+v became %+v", shared, got)
	}
	priority := []recipes.PriorityContender{
		{SharedContender: shared[0], Priority: 99, Heir: true},
		{SharedContender: shared[1], Holds: true},
	}
	if got := wire.PriorityContenders(wire.ToPriorityContenders(priority)); !reflect.DeepEqual(got, priority) {
		t.Errorf("%+v became %+v", priority, got)
	}
	if got := wire.SharedContender(nil); !reflect.DeepEqual(got, recipes.SharedContender{}) {
		t.Errorf("nothing became %+v", got)
	}
}

func TestModesThatAreNotKnown(t *testing.T) {
	if m := wire.Mode(pb.Mode(99)); m != "" {
		t.Errorf("mode %q", m)
	}
	if m := wire.ToMode("append"); m != pb.Mode_MODE_UNSPECIFIED {
		t.Errorf("mode %v", m)
	}
}
