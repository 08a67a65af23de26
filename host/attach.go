package host

import (
	"context"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
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

func (a *attached) gone() <-chan struct{} { return a.ended }
func (a *attached) cleanUp()              { a.leave(); _ = a.conn.Close() }
func (a *attached) pid() int              { return a.reattach.PID }

func (a *attached) ending() string {
	return fmt.Sprintf("plugin that was being debugged (pid %d): the connection has ended", a.reattach.PID)
}
