package host

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/version"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// memory is the buffer size of an in-memory connection, in bytes.
const memory = 256 << 10

// InProcess returns a Plugin in this process. It opens sessions with open. It serves the
// same gRPC as a plugin process, over memory instead of a socket. Use it in tests, and to
// measure the cost of gRPC without a process.
func InProcess(open recipes.Opener) (*Plugin, error) {
	m := newInMemory(open)
	conn, err := grpc.NewClient("passthrough:///memory", append(client.DialOptions(nil, nil),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return m.listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		m.stop(context.Background())
		return nil, err
	}
	m.conn = conn
	p, err := newPlugin(context.Background(), conn, nil, m, nil)
	if err != nil {
		m.stop(context.Background())
		m.cleanUp()
		return nil, err
	}
	return p, nil
}

type inMemory struct {
	listener *bufconn.Listener
	server   *server.Server
	grpc     *grpc.Server
	conn     *grpc.ClientConn
	serving  sync.WaitGroup
	ended    chan struct{}
}

func newInMemory(open recipes.Opener) *inMemory {
	s := server.New(server.Config{Open: open, Version: version.String()})
	m := &inMemory{
		listener: bufconn.Listen(memory),
		server:   s,
		grpc:     grpc.NewServer(append(s.Options(), grpc.WaitForHandlers(true))...),
		ended:    make(chan struct{}),
	}
	m.server.Register(m.grpc)
	m.serving.Go(func() {
		defer close(m.ended)
		_ = m.grpc.Serve(m.listener)
	})
	return m
}

func (m *inMemory) stop(context.Context) {
	m.grpc.Stop()
	m.serving.Wait()
}

func (m *inMemory) gone() <-chan struct{} { return m.ended }

func (m *inMemory) cleanUp() {
	m.serving.Wait()
	_ = m.server.Close(context.Background()) // bounded: the streams have ended
	_ = m.conn.Close()
	_ = m.listener.Close()
}

func (m *inMemory) ending() string { return "in-process plugin: stopped" }
func (m *inMemory) pid() int       { return 0 }
