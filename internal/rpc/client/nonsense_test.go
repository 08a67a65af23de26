package client_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// An invalid answer of a plugin grants nothing.
func TestAnAnswerWithoutAGrantIsNotHeld(t *testing.T) {
	for name, grant := range map[string]*pb.Grant{"none": nil, "token": {Znode: "/l/lock-1"}, "znode": {Token: 5}, "negative": {Znode: "/l/lock-1", Token: -5}} {
		t.Run(name, func(t *testing.T) {
			c := client.Unconnected()
			asked, abandoned := make(chan string, 1), make(chan string, 1)
			play(t, c, &scripted{open: serves(time.Hour), abandoned: abandoned, acquire: func(r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
				asked <- r.GetRequestId()
				return &pb.AcquireResponse{Grant: grant}, nil
			}})
			s := openScripted(t, c)
			h, err := lock(t, s, recipes.LockConfig{}).Acquire(ctx(t))
			if h != nil || !errors.Is(err, recipes.ErrInternal) {
				t.Error(h, err)
			}
			if a, b := next(t, asked), next(t, abandoned); a != b {
				t.Errorf("%s was abandoned, and %s was asked for", b, a)
			}
			must.Report(t, s.Err())
		})
	}
}

// A newer plugin may send messages that this host does not know. A broken plugin may send any
// message.
func TestInvalidMessagesOnTheStreamAreIgnored(t *testing.T) {
	age := durationpb.New
	nonsense := []*pb.OpenResponse{
		{},
		opened(time.Nanosecond),
		{Message: &pb.OpenResponse_StateChanged{}},
		{Message: &pb.OpenResponse_StateChanged{StateChanged: &pb.StateChanged{State: 77}}},
		{Message: &pb.OpenResponse_GrantLost{}},
		{Message: &pb.OpenResponse_GrantLost{GrantLost: &pb.GrantLost{RequestId: "none"}}},
		{Message: &pb.OpenResponse_Joined{}},
		{Message: &pb.OpenResponse_Joined{Joined: &pb.Joined{RequestId: "1"}}},
		{Message: &pb.OpenResponse_BeatEcho{}},
		{Message: &pb.OpenResponse_BeatEcho{BeatEcho: &pb.BeatEcho{Number: 1 << 60, ContactAge: age(1 << 60), Timeout: age(1)}}},
		{Message: &pb.OpenResponse_BeatEcho{BeatEcho: &pb.BeatEcho{Number: 1, ContactAge: age(-1 << 60), KnownContactAge: age(-1 << 60), Timeout: age(-1)}}},
		{Message: &pb.OpenResponse_StateChanged{StateChanged: &pb.StateChanged{State: pb.State_STATE_CONNECTED}}},
	}
	c := client.Unconnected()
	play(t, c, &scripted{
		open: func(st leaseStream, r *pb.Resume) error {
			_ = st.Send(opened(time.Hour))
			for _, m := range nonsense {
				_ = st.Send(m)
			}
			echo := serves(time.Hour)
			return echo(quiet{st}, r)
		},
		acquire: func(*pb.AcquireRequest) (*pb.AcquireResponse, error) {
			return &pb.AcquireResponse{Grant: &pb.Grant{Token: 5, Znode: "/l/lock-1"}}, nil
		},
	})
	s := openScripted(t, c)
	h, err := lock(t, s, recipes.LockConfig{}).Acquire(ctx(t))
	if err != nil || h.Err() != nil || s.Err() != nil || s.Timeout() != time.Hour {
		t.Error(err, s.Err(), s.Timeout())
	}
	until(t, s, recipes.Connected)
}

// quiet is a stream on which only Opened was sent.
type quiet struct{ leaseStream }

func (q quiet) Send(m *pb.OpenResponse) error {
	if m.GetOpened() != nil {
		return nil
	}
	return q.leaseStream.Send(m)
}
