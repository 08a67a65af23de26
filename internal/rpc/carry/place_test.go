package carry_test

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// byHand is a stream of calls whose messages a test gives and gets.
type byHand struct {
	callStream
	ctx  context.Context
	in   chan *pb.CarryRequest
	send func(*pb.CarryResponse)
}

func (s byHand) Context() context.Context { return s.ctx }

func (s byHand) Recv() (*pb.CarryRequest, error) {
	select {
	case m := <-s.in:
		return m, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s byHand) Send(m *pb.CarryResponse) error { s.send(m); return nil }

// TestACallGivesItsPlaceBackBeforeItsAnswer: a host that has the answer may send another call
// at once, and the plugin refuses it if there is no room.
func TestACallGivesItsPlaceBackBeforeItsAnswer(t *testing.T) {
	const calls = carry.MaxBytes / carry.MaxPayload
	payload, err := proto.Marshal(&pb.AcquireRequest{Data: make([]byte, carry.MaxPayload-4)})
	if err != nil || len(payload) != carry.MaxPayload {
		t.Fatalf("%d bytes, %v", len(payload), err)
	}
	started, ended, release := make(chan struct{}, calls+1), make(chan struct{}, calls+1), make(chan struct{})
	d := carry.NewDispatcher(carry.Config{})
	pb.RegisterLockServiceServer(d, locks{acquire: func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
			ended <- struct{}{}
		}
		return &pb.AcquireResponse{}, nil
	}})
	call := func(id uint64) *pb.CarryRequest {
		return &pb.CarryRequest{Calls: []*pb.Call{{Id: id, Method: pb.LockService_Acquire_FullMethodName, Payload: payload}}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	answers := 0
	st := byHand{ctx: ctx, in: make(chan *pb.CarryRequest)}
	st.send = func(m *pb.CarryResponse) {
		answers += len(m.GetAnswers())
		if answers != 1 {
			return
		}
		st.in <- call(calls + 1) // in the moment in which the host gets the answer
		select {
		case <-started:
		case <-ended: // the plugin has ended the stream
			t.Error("the call was refused")
		}
		cancel()
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = d.Carry(st) }()
	for id := range uint64(calls) {
		st.in <- call(id + 1)
		<-started
	}
	release <- struct{}{}
	<-served
}
