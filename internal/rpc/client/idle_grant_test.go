package client_test

import (
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A session that has held nothing for hours has an old proof, and so does the host's last
// echo. The plugin renews the proof before it grants. The host asks for the renewed one, and
// holds the lock.
func TestAGrantInASessionThatWasIdleIsHeld(t *testing.T) {
	const timeout = time.Hour
	var granted atomic.Bool
	c := client.Unconnected()
	play(t, c, &scripted{
		open: func(st leaseStream, _ *pb.Resume) error {
			err := st.Send(opened(timeout))
			for err == nil {
				var m *pb.OpenRequest
				if m, err = st.Recv(); err != nil {
					break
				}
				known := 2 * timeout
				if granted.Load() {
					known = timeout / 2
				}
				err = st.Send(&pb.OpenResponse{Message: &pb.OpenResponse_BeatEcho{BeatEcho: &pb.BeatEcho{
					Number: m.GetBeat().GetNumber(), ContactAge: durationpb.New(0), KnownContactAge: durationpb.New(known),
				}}})
			}
			return err
		},
		acquire: func(*pb.AcquireRequest) (*pb.AcquireResponse, error) {
			granted.Store(true)
			return &pb.AcquireResponse{Grant: &pb.Grant{Token: 5, Znode: "/l/lock-1"}}, nil
		},
	})
	s := openScripted(t, c)
	hold := must.Get(lock(t, s, recipes.LockConfig{}).Acquire(ctx(t)))(t)
	if err := hold.Err(); err != nil {
		t.Errorf("held with %v", err)
	}
}
