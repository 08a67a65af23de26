package server_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
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
		payload := must.Get(proto.Marshal(&pb.AcquireRequest{Session: h.session, RequestId: request, Path: "/l", Announce: true, Recipe: &pb.AcquireRequest_Lock{}}))(t)
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
	if place, ok := wire.EarlyPlace(a.GetPayload()); !ok || !a.GetMore() || place.Position != 1 {
		t.Errorf("the second: %v", a)
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
