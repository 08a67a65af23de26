package link_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	rpclink "github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// patience bounds every wait of a test. A correct program never waits that long.
const patience = watchdog.Patience

// link is a client and a server, connected by a wire that can be stalled and cut.
type link struct {
	zk     *zkserver.Server // of newLink
	client *rpclink.Client
	server *server.Server
	conn   *grpc.ClientConn
	wire   *wire
	calls  chan struct{} // one for each unary call that has reached its handler
	garbler
}

func newLink(t *testing.T, opts ...grpc.DialOption) *link {
	t.Helper()
	return newLinkWithin(t, server.Limits{}, opts...)
}

// newLinkWithin serves the recipes on an in-process server, with limits.
func newLinkWithin(t *testing.T, limits server.Limits, opts ...grpc.DialOption) *link {
	t.Helper()
	zk, dial := zktest.Piped(t)
	l := serve(t, server.Config{Open: dial.Open, Resume: dial.Resume, Limits: limits}, opts...)
	l.zk = zk
	return l
}

// newLinkOver serves sessions that open opens.
func newLinkOver(t *testing.T, open recipes.Opener, opts ...grpc.DialOption) *link {
	t.Helper()
	return serve(t, server.Config{Open: open, Resume: zookeeper.Resume}, opts...)
}

func serve(t *testing.T, cfg server.Config, opts ...grpc.DialOption) *link {
	t.Helper()
	l := &link{wire: &wire{}, calls: make(chan struct{}, 1)}
	cfg.Version, cfg.Intercept = "test", l.count
	l.server = server.New(cfg)
	listener := bufconn.Listen(1 << 16)
	g := grpc.NewServer(append(l.server.Options(), grpc.WaitForHandlers(true))...)
	l.server.Register(g)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(listener) })
	var dial func(context.Context) (net.Conn, error)
	if way != "unary" {
		dial = l.callConnections(t, &serving)
	}
	opts = append(rpclink.DialOptions(nil, nil), opts...)
	conn := must.Get(grpc.NewClient("passthrough:///test", append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := listener.DialContext(ctx)
			if err != nil {
				return nil, err
			}
			return l.wire.attach(c)
		}),
	}, opts...)...))(t)
	l.conn, l.client = conn, client.New(conn, dial)
	t.Cleanup(func() {
		l.wire.thaw()
		l.client.Close()
		_ = conn.Close()
		g.Stop()
		_ = l.server.Close(context.Background())
		serving.Wait()
		_ = listener.Close()
	})
	return l
}

func (l *link) count(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	select {
	case l.calls <- struct{}{}:
	default: // the test does not count
	}
	return handle(ctx, req)
}

// way is the transport of calls: a connection of their own, or the value of wayEnv; see
// TestEverythingAnotherWay.
var way = os.Getenv(wayEnv)

const wayEnv = "ZKRECIPES_TEST_WAY"

// The test runs this package's tests once more, with a plugin that supports only gRPC calls.
func TestEverythingAnotherWay(t *testing.T) {
	if way != "" {
		t.Skip("this is the other way")
	}
	self := must.Get(os.Executable())(t)
	tests := exec.CommandContext(t.Context(), self, "-test.short="+strconv.FormatBool(testing.Short()))
	tests.Env = append(os.Environ(), wayEnv+"=unary")
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// byGRPC skips a test whose plugins support only gRPC calls anyway.
func byGRPC(t *testing.T) {
	t.Helper()
	if way == "unary" {
		t.Skip("its plugins make no difference between the ways")
	}
}

// callConnections serves connections for calls alone, and returns how to open one. A frozen
// wire freezes the plugin's end of them.
func (l *link) callConnections(t *testing.T, serving *sync.WaitGroup) func(context.Context) (net.Conn, error) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel) // after the client is closed
	return func(context.Context) (net.Conn, error) {
		buffered := bufconn.Listen(1 << 16)
		var plugin net.Conn
		var accepted sync.WaitGroup
		accepted.Go(func() { plugin, _ = buffered.Accept() })
		host, err := buffered.Dial()
		accepted.Wait()
		if err != nil {
			return nil, err
		}
		serving.Go(func() { l.server.ServeCalls(ctx, alongside{plugin, l.wire}) })
		return garbled{host, &l.garbler}, nil
	}
}

// alongside is a connection that is frozen together with a wire.
type alongside struct {
	net.Conn
	wire *wire
}

func (a alongside) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	a.wire.wait()
	return n, err
}

func (a alongside) Write(p []byte) (int, error) {
	a.wire.wait()
	return a.Conn.Write(p)
}

// wire is the client's end of a connection. While frozen it transfers nothing in either
// direction, and reports no error, like a stopped process.
type wire struct {
	net.Conn
	mu     sync.Mutex
	frozen chan struct{} // closed by thaw; nil when moving
}

// attach takes the first connection and refuses a second one, like a dead plugin.
func (w *wire) attach(c net.Conn) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Conn != nil {
		return nil, errors.Join(errors.New("no second connection"), c.Close())
	}
	w.Conn = c
	return w, nil
}

func (w *wire) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.frozen == nil {
		w.frozen = make(chan struct{})
	}
}

func (w *wire) thaw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.frozen != nil {
		close(w.frozen)
		w.frozen = nil
	}
}

func (w *wire) wait() {
	w.mu.Lock()
	frozen := w.frozen
	w.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.wait()
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	w.wait()
	return w.Conn.Write(p)
}

func ctx(t testing.TB) context.Context { t.Helper(); return watchdog.Bounded(t) }

// open opens a session with that timeout; 0 selects one that no test outlasts.
func (l *link) open(t *testing.T, timeout time.Duration) recipes.Client {
	t.Helper()
	if timeout == 0 {
		timeout = time.Minute
	}
	return must.Get(l.client.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: timeout}))(t)
}

func lock(t *testing.T, s recipes.Recipes, cfg recipes.LockConfig) recipes.Lock {
	t.Helper()
	return must.Get(s.Lock("/l", cfg))(t)
}

func acquire(t *testing.T, s recipes.Recipes) recipes.Hold {
	t.Helper()
	return must.Get(lock(t, s, recipes.LockConfig{}).Acquire(ctx(t)))(t)
}

func election(t *testing.T, s recipes.Recipes) recipes.Election {
	t.Helper()
	return must.Get(s.Election("/e", recipes.ElectionConfig{}))(t)
}

// eventually waits until cond holds of the server, which reports no changes.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for ctx := ctx(t); !cond(); time.Sleep(100 * time.Microsecond) {
		if ctx.Err() != nil {
			t.Fatal(what)
		}
	}
}

func closes(t testing.TB, what string, ch <-chan struct{}) { t.Helper(); watchdog.Closes(t, what, ch) }
