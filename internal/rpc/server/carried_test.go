package server_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// callConnections returns how to open connections for calls alone to s.
func callConnections(t *testing.T, s *server.Server) func(context.Context) (net.Conn, error) {
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	t.Cleanup(func() { stop(); serving.Wait() })
	return func(context.Context) (net.Conn, error) {
		host, plugin := net.Pipe()
		serving.Go(func() { s.ServeCalls(ctx, plugin) })
		return host, nil
	}
}

// The first contender gets one answer. The second gets an early part with its place while it
// waits.
func TestOnlyAWaiterGetsItsPlaceEarly(t *testing.T) {
	const limit = 40 << 10
	h := newRawHost(t, server.Config{Limits: server.Limits{Message: limit}})
	h.open(nil)
	calls := must.Get(callConnections(t, h.server)(t.Context()))(t)
	defer calls.Close()
	ask := func(id uint64, request string) *pb.Answer {
		t.Helper()
		payload := must.Get(proto.Marshal(&pb.AcquireRequest{Session: h.session, RequestId: request, Path: "/l", Recipe: &pb.AcquireRequest_Lock{}}))(t)
		call := &pb.Call{Id: id, Method: pb.GrantService_Acquire_FullMethodName, Payload: payload, Early: true}
		if id == 1 {
			if l := receive(t, calls).GetLimits(); l.GetMessage() != limit {
				t.Errorf("the limits of calls: %v", l)
			}
		}
		send(t, calls, &pb.CarryRequest{Calls: []*pb.Call{call}})
		return receive(t, calls).GetAnswers()[0]
	}
	if a := ask(1, "a"); a.GetId() != 1 || a.GetMore() {
		t.Errorf("the first in line: %v", a)
	}
	a := ask(2, "b")
	part := new(pb.AcquireResponse)
	if err := proto.Unmarshal(a.GetPayload(), part); err != nil || !a.GetMore() || part.GetPlace().GetPosition() != 1 {
		t.Errorf("the second: %v, %v", a, err)
	}
}

// failing is a session whose locks fail when their contender has joined the wait queue as the first.
type failing struct{ recipes.Client }

func (failing) Lock(_ string, cfg recipes.LockConfig) (recipes.Lock, error) {
	return failingLock{joined: cfg.Joined}, nil
}

type failingLock struct {
	recipes.Lock
	joined func(recipes.Place)
}

func (l failingLock) Acquire(context.Context) (recipes.Hold, error) {
	l.joined(recipes.Place{Znode: "/l/lock-1"})
	return nil, recipes.ErrUnavailable
}

// The application gets the place of every contender that has joined, so it comes before the error. A
// repeated call gets both too.
func TestThePlaceComesBeforeAnError(t *testing.T) {
	h := newRawHost(t, server.Config{})
	h.wrap = func(s recipes.Client) recipes.Client { return failing{s} }
	h.open(nil)
	for range 2 {
		znode, answered := h.announced(&pb.AcquireRequest{RequestId: "1", Path: "/l", Recipe: &pb.AcquireRequest_Lock{}})
		a := <-answered
		if err, _ := wire.Error(a.err); znode != "/l/lock-1" || !errors.Is(err, recipes.ErrUnavailable) {
			t.Errorf("%q, %v", znode, err)
		}
	}
}

// send writes a message after its length.
func send(t *testing.T, conn net.Conn, m *pb.CarryRequest) {
	t.Helper()
	b, err := proto.Marshal(m)
	if err == nil {
		_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	}
	must.Do(t, err)
}

func receive(t *testing.T, conn net.Conn) *pb.CarryResponse {
	t.Helper()
	head := make([]byte, 4)
	_, err := io.ReadFull(conn, head)
	b := make([]byte, binary.BigEndian.Uint32(head))
	if err == nil {
		_, err = io.ReadFull(conn, b)
	}
	m := new(pb.CarryResponse)
	if err == nil {
		err = proto.Unmarshal(b, m)
	}
	must.Do(t, err)
	return m
}
