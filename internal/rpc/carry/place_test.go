package carry_test

import (
	"context"
	"net"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"google.golang.org/protobuf/proto"
)

// hooked calls wrote after each write, before the writer continues.
type hooked struct {
	net.Conn
	wrote func()
}

func (c hooked) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wrote()
	return n, err
}

// A host that has the answer may send another call at once, and the plugin refuses it if
// there is no place.
func TestACallFreesItsPlaceBeforeItsAnswer(t *testing.T) {
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
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	host := newFrames(ctx, near)
	writes := 0
	conn := hooked{far, func() {
		if writes++; writes != 2 { // the limits come first, then the answer
			return
		}
		must.Report(t, host.send(call(calls+1))) // as soon as the host gets the answer
		select {
		case <-started:
		case <-ended: // the plugin has ended the connection
			t.Error("the call was refused")
		}
		cancel()
	}}
	served := make(chan struct{})
	go func() { defer close(served); d.ServeConn(ctx, conn) }()
	var limits, answer pb.CarryResponse
	if err := host.receive(&limits); err != nil || limits.GetLimits() == nil {
		t.Fatal(&limits, err)
	}
	for id := range uint64(calls) {
		must.Do(t, host.send(call(id+1)))
		<-started
	}
	release <- struct{}{}
	if err := host.receive(&answer); err != nil || len(answer.GetAnswers()) != 1 {
		t.Error(&answer, err)
	}
	<-served
}

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
