// Package client implements the contract (package recipes) over gRPC. Its sessions, locks and
// elections are stubs that call internal/rpc/server.
//
// The session's stream delivers its state, and the loss of the session or of a grant. The
// stubs report these without a call. Each session has a clock in the host. If the plugin
// freezes, that clock ends the session before ZooKeeper can grant to others what it holds
// (see SessionService.Open in session.proto).
//
// Order of use: [New] with a connection, [Client.Open] for each session, [Client.Close]
// before the connection is closed.
package client

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	calls "github.com/zkrecipes/zkrecipes/internal/rpc/telemetry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Client opens sessions over one connection, or over a sequence of connections: see Connect.
type Client struct {
	services
	meters *telemetry.Meters

	ctx    context.Context // its cause is the reason why all sessions are lost
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	current  *Plugin
	resumes  bool          // present can resume sessions
	replaced chan struct{} // closed, and replaced, when current changes
	closed   bool
	running  sync.WaitGroup // goroutines of sessions
}

// New returns a Client over a connection, which the caller owns. If the connection was
// dialled with DialOptions, unary calls use a separate connection from dial. If dial is nil
// or fails, unary calls use gRPC.
func New(over grpc.ClientConnInterface, dial carry.Dialer) *Client {
	c := Unconnected()
	c.Use(c.Connect(over, dial, nil), false)
	return c
}

// Unconnected returns a Client that can open sessions after the first Use.
func Unconnected() *Client {
	c := &Client{replaced: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.services = servicesOf(router{c})
	return c
}

// Measure has m count the sessions opened from now on, and their grants. Call it before the
// first Open.
func (c *Client) Measure(m *telemetry.Meters) { c.meters = m }

// Fail ends all sessions with reason, which should match recipes.ErrSessionLost, and makes
// Open fail with it. Only the first reason counts. Fail does not wait.
func (c *Client) Fail(reason error) { c.cancel(reason) }

// Close ends all sessions with recipes.ErrClosed, and waits for their goroutines.
func (c *Client) Close() {
	c.Fail(recipes.ErrClosed)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}

// spawn runs f in a goroutine that Close waits for. After Close it does nothing and returns
// false.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Go(f)
	return true
}

// Plugin returns the plugin that new sessions use.
func (c *Client) Plugin() *Plugin {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// successor waits for a plugin other than p and reports whether that plugin can resume
// sessions. It returns nil if ctx ends first.
func (c *Client) successor(ctx context.Context, p *Plugin) (next *Plugin, resumes bool) {
	for {
		c.mu.Lock()
		next, resumes, replaced := c.current, c.resumes, c.replaced
		c.mu.Unlock()
		if next != p {
			return next, resumes
		}
		select {
		case <-replaced:
		case <-ctx.Done():
			return nil, false
		}
	}
}

type services struct {
	sessions       pb.SessionServiceClient
	grants         pb.GrantServiceClient
	contenders     pb.ContenderServiceClient
	readWriteLocks pb.ReadWriteLockServiceClient
	elections      pb.ElectionServiceClient
	queues         pb.QueueServiceClient
	transactions   pb.TransactionServiceClient
	groups         pb.GroupServiceClient
	names          pb.NamesServiceClient
	barriers       pb.BarrierServiceClient
	doubleBarriers pb.DoubleBarrierServiceClient
	configurations pb.ConfigurationServiceClient
	counters       pb.CounterServiceClient
	latches        pb.LatchServiceClient
}

func servicesOf(conn grpc.ClientConnInterface) services {
	return services{
		sessions:       pb.NewSessionServiceClient(conn),
		grants:         pb.NewGrantServiceClient(conn),
		contenders:     pb.NewContenderServiceClient(conn),
		readWriteLocks: pb.NewReadWriteLockServiceClient(conn),
		elections:      pb.NewElectionServiceClient(conn),
		queues:         pb.NewQueueServiceClient(conn),
		transactions:   pb.NewTransactionServiceClient(conn),
		groups:         pb.NewGroupServiceClient(conn),
		names:          pb.NewNamesServiceClient(conn),
		barriers:       pb.NewBarrierServiceClient(conn),
		doubleBarriers: pb.NewDoubleBarrierServiceClient(conn),
		configurations: pb.NewConfigurationServiceClient(conn),
		counters:       pb.NewCounterServiceClient(conn),
		latches:        pb.NewLatchServiceClient(conn),
	}
}

// unbounded replaces gRPC's limit on the message size, as in go-plugin. A plugin's message is
// as large as the data that it read from ZooKeeper. The plugin limits the messages that it
// accepts.
const unbounded = 1<<31 - 1

// DialOptions returns the options of a connection to a plugin, whatever its transport. The
// caller adds transport security. Providers that are not nil trace and measure the calls.
func DialOptions(t trace.TracerProvider, m metric.MeterProvider) []grpc.DialOption {
	h := calls.Client(t, m)
	options := []grpc.DialOption{
		grpc.WithStaticStreamWindowSize(wire.StreamWindow),
		grpc.WithStaticConnWindowSize(wire.ConnectionWindow),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(unbounded), grpc.MaxCallSendMsgSize(unbounded)),
		carry.DialOption(h),
	}
	if h != nil {
		options = append(options, grpc.WithStatsHandler(h))
	}
	return options
}
