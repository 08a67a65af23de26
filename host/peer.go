package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/version"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ErrReattach is returned by Launch when it cannot use the running plugin that
// ZKRECIPES_PLUGIN_REATTACH names.
var ErrReattach = errors.New("cannot use the running plugin")

// reattach connects to the plugin in a debugger that the environment names. It returns nil
// if the environment names none. go-plugin supports no AutoMTLS for a plugin that the host
// did not start, so the connection is neither encrypted nor authenticated.
func reattach(ctx context.Context, cfg Config) (*Plugin, error) {
	value := os.Getenv(handshake.ReattachEnv)
	if value == "" {
		return nil, nil
	}
	cfg, err := cfg.defaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	fail := func(err error) (*Plugin, error) {
		return nil, fmt.Errorf("host: %w: %w; unset %s to launch one", ErrReattach, err, handshake.ReattachEnv)
	}
	r, err := handshake.ParseReattach(value)
	switch {
	case err != nil:
		return fail(err)
	case cfg.Checksum != "":
		return fail(errors.New("a checksum is configured, and a plugin that runs cannot be verified"))
	}
	cfg.Logger.Warn("using a plugin that is being debugged: no TLS, no checksum", "pid", r.PID, "address", r.Address)
	target := "passthrough:///" + r.Address
	if r.Network == "unix" {
		target = "unix:" + r.Address
	}
	conn, err := grpc.NewClient(target, append(cfg.dialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return fail(err)
	}
	a := &attached{reattach: r, conn: conn, ended: make(chan struct{})}
	a.ctx, a.leave = context.WithCancel(context.Background())
	p, err := newPlugin(ctx, conn, nil, a, cfg.MeterProvider)
	if err != nil {
		a.leave()
		_ = conn.Close()
		return fail(err)
	}
	go a.watch() // Plugin.watch waits for it
	return p, nil
}

type attached struct {
	reattach handshake.Reattach
	conn     *grpc.ClientConn
	ctx      context.Context // cancelled by stop
	leave    context.CancelFunc
	ended    chan struct{}
}

// watch opens a stream to the plugin and waits for its end. The plugin is not a child of this
// process, so the system does not report its exit. The state of a gRPC connection lags behind
// the errors of its calls.
func (a *attached) watch() {
	defer close(a.ended)
	st, err := pb.NewPluginServiceClient(a.conn).Attach(a.ctx, &pb.AttachRequest{})
	for err == nil { // stop cancels a.ctx
		_, err = st.Recv()
	}
}

// stop leaves the plugin running. The plugin closes this host's sessions when their streams
// end.
func (a *attached) stop(context.Context) {
	a.leave()
	<-a.ended
}

func (a *attached) disconnected(error)    {} // watch notices it too
func (a *attached) gone() <-chan struct{} { return a.ended }
func (a *attached) cleanUp()              { a.leave(); _ = a.conn.Close() }
func (a *attached) pid() int              { return a.reattach.PID }

func (a *attached) ending() string {
	return fmt.Sprintf("plugin that was being debugged (pid %d): the connection has ended", a.reattach.PID)
}

// memory is the buffer size of an in-memory connection, in bytes.
const memory = 256 << 10

// InProcess returns a Plugin in this process. It opens sessions with open. It serves the
// same gRPC as a plugin process, over memory instead of a socket. Use it in tests, and to
// measure the cost of gRPC without a process.
func InProcess(open recipes.Opener) (*Plugin, error) {
	m := newInMemory(open)
	conn, err := grpc.NewClient("passthrough:///memory", append(link.DialOptions(nil, nil),
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

func (m *inMemory) disconnected(error)    {} // the connection ends only with the server
func (m *inMemory) gone() <-chan struct{} { return m.ended }

func (m *inMemory) cleanUp() {
	m.serving.Wait()
	_ = m.server.Close(context.Background()) // bounded: the streams have ended
	_ = m.conn.Close()
	_ = m.listener.Close()
}

func (m *inMemory) ending() string { return "in-process plugin: stopped" }
func (m *inMemory) pid() int       { return 0 }
