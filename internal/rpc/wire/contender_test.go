package wire

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Its bytes, followed by those of the response, parse as the response.
func TestEarlyPlaceIsAPartOfTheResponse(t *testing.T) {
	place := recipes.Place{Znode: "/l/n", Position: 3}
	early := must.Get(proto.Marshal(ToEarlyPlace(place)))(t)
	if got, ok := EarlyPlace(early); !ok || got != place {
		t.Error(got, ok)
	}
	response := &pb.AcquireResponse{Grant: &pb.Grant{Token: 9}, Place: ToPlace(place), Recipe: &pb.AcquireResponse_Slot{Slot: 2}}
	whole, got := must.Get(proto.Marshal(response))(t), new(pb.AcquireResponse)
	if err := proto.Unmarshal(append(early[:len(early):len(early)], whole...), got); err != nil || !proto.Equal(got, response) {
		t.Errorf("%v, %v", got, err)
	}
	for _, part := range [][]byte{nil, {0xff}, must.Get(proto.Marshal(&pb.AcquireResponse{Grant: response.GetGrant()}))(t)} {
		if _, ok := EarlyPlace(part); ok {
			t.Errorf("%x is a place", part)
		}
	}
}
