package carry_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The plugin dies right after it has sent the part. A contender keeps its place in the next
// plugin only if the host knows the place.
func TestEarlyPartIsReadThoughThePluginDies(t *testing.T) {
	part := must.Get(proto.Marshal(wire.ToEarlyPlace(recipes.Place{Znode: "/l/lock-1", Position: 1})))(t)
	for range 30 {
		p := newPair(t, setting{acquire: echo, script: func(f *frames) error {
			_ = f.Send(&pb.CarryResponse{Limits: wide})
			if _, err := f.Recv(); err != nil {
				return err
			}
			return f.Send(&pb.CarryResponse{Answers: []*pb.Answer{{Id: 1, Payload: part, More: true}}})
		}})
		read := 0
		_, err := p.Acquire(carry.WithEarly(bounded(t), func(got []byte) {
			if string(got) == string(part) {
				read++
			}
		}), &pb.AcquireRequest{})
		if err == nil || read != 1 {
			t.Fatalf("read %d times, %v", read, err)
		}
	}
}
