package wire

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Its bytes, followed by those of the response, parse as the response.
func TestEarlyPlaceIsAPartOfEveryGrantWithAQueue(t *testing.T) {
	place := recipes.Place{Znode: "/l/n", Position: 3}
	early := must.Get(proto.Marshal(ToEarlyPlace(place)))(t)
	if got, ok := EarlyPlace(early); !ok || got != place {
		t.Error(got, ok)
	}
	g, p := &pb.Grant{Token: 9}, ToPlace(place)
	for _, response := range []proto.Message{
		&pb.AcquireResponse{Grant: g, Place: p}, &pb.CampaignResponse{Grant: g, Place: p},
		&pb.AcquirePermitResponse{Grant: g, Place: p}, &pb.AcquireReadWriteResponse{Grant: g, Place: p},
	} {
		whole := must.Get(proto.Marshal(response))(t)
		got := response.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(append(early[:len(early):len(early)], whole...), got); err != nil || !proto.Equal(got, response) {
			t.Errorf("%T: %v, %v", response, got, err)
		}
		alone := response.ProtoReflect().New().Interface().(interface {
			proto.Message
			GetPlace() *pb.Place
		})
		if err := proto.Unmarshal(early, alone); err != nil || !proto.Equal(alone.GetPlace(), p) {
			t.Errorf("%T: %v, %v", response, alone, err)
		}
	}
	for _, part := range [][]byte{nil, {0xff}, must.Get(proto.Marshal(&pb.AcquireResponse{Grant: g}))(t)} {
		if _, ok := EarlyPlace(part); ok {
			t.Errorf("%x is a place", part)
		}
	}
}
