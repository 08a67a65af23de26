package wire_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestAnEarlyPlaceIsToldFromNone(t *testing.T) {
	encode := func(m proto.Message) []byte {
		return must.Get(proto.Marshal(m))(t)
	}
	place := recipes.Place{Znode: "/l/lock-0000000001", Position: 1}
	for _, test := range []struct {
		name string
		part []byte
		want bool
	}{
		{"a place", encode(wire.ToEarlyPlace(place)), true},
		{"an answer without one", encode(&pb.AcquireResponse{Grant: &pb.Grant{Token: 1}}), false},
		{"nothing", nil, false},
		{"what is no message", []byte{0xff}, false},
	} {
		got, ok := wire.EarlyPlace(test.part)
		if ok != test.want || ok && got != place {
			t.Errorf("%s: %+v, %v", test.name, got, ok)
		}
	}
}
