package server_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestHostsOfOtherTimes: an older host leaves out everything that was added
// after the first version, and a newer one sends fields that this plugin does
// not know. Both get their lock.
func TestHostsOfOtherTimes(t *testing.T) {
	for _, test := range []struct {
		name string
		more func(proto.Message)
	}{
		{"older", func(proto.Message) {}},
		{"newer", func(m proto.Message) {
			field := protowire.AppendTag(nil, 1000, protowire.VarintType)
			m.ProtoReflect().SetUnknown(protowire.AppendVarint(field, 7))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn := serve(t)
			ctx, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
			defer cancel()
			st, err := pb.NewSessionServiceClient(conn).Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			start := &pb.Start{Config: &pb.Config{Servers: []string{"fake"}, SessionTimeout: durationpb.New(time.Minute)}}
			test.more(start)
			if err := st.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Start{Start: start}}); err != nil {
				t.Fatal(err)
			}
			m, err := st.Recv()
			if err != nil {
				t.Fatal(err)
			}
			session := m.GetOpened().GetSession()
			ask := &pb.AcquireRequest{Session: session, RequestId: "1", Path: "/l"}
			test.more(ask)
			a, err := pb.NewLockServiceClient(conn).Acquire(ctx, ask)
			if err != nil || a.GetGrant().GetToken() == 0 {
				t.Fatal(a, err)
			}
			if _, err := pb.NewGrantServiceClient(conn).Release(ctx, &pb.ReleaseRequest{Session: session, RequestId: "1"}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// serve serves a fake world in memory.
func serve(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, _ := serveWith(t, new(fake.World).Open)
	return conn
}

func serveWith(t *testing.T, open recipes.Opener, opts ...grpc.DialOption) (*grpc.ClientConn, *server.Server) {
	t.Helper()
	return serveConfig(t, server.Config{Open: open}, opts...)
}

func serveConfig(t *testing.T, cfg server.Config, opts ...grpc.DialOption) (*grpc.ClientConn, *server.Server) {
	t.Helper()
	return serveGRPC(t, cfg, nil, opts...)
}

func serveGRPC(t *testing.T, cfg server.Config, served []grpc.ServerOption, opts ...grpc.DialOption) (*grpc.ClientConn, *server.Server) {
	t.Helper()
	l := bufconn.Listen(64 << 10)
	s := server.New(cfg)
	g := grpc.NewServer(append(append(s.Options(), grpc.WaitForHandlers(true)), served...)...)
	s.Register(g)
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///memory", append(append(client.DialOptions(nil, nil), opts...), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); g.Stop(); <-done; _ = s.Close(context.Background()) })
	return conn, s
}
