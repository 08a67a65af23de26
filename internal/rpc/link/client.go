// Package link connects a host with its plugins: sessions, what they hold, and calls that
// outlive a plugin process. It knows no recipe; package client has one stub for each.
//
// The session's stream delivers its state, and the loss of the session or of a grant. A
// [Session] reports these without a call. Each session has a clock in the host. If the plugin
// freezes, that clock ends the session before ZooKeeper can grant to others what it holds
// (see SessionService.Open in session.proto).
//
// A stub makes its calls in four ways:
//
//   - [Read]: a call that changes nothing, or that may be repeated although it does.
//   - [Write]: a call that changes something. Its outcome may be unknown. [Options] say whether
//     it may be repeated, and whether it can be abandoned.
//     [WriteOrFind] is for a write whose effect the next plugin can find.
//   - [Session.Acquire]: a call for a [Grant]. The next plugin resumes the grant. [AcquireMany] is
//     for several grants.
//   - [Stream]: a call for a sequence of values.
//
// Order of use for a host: client.New with a connection, [Client.Open] for each session,
// [Client.Close] before the connection is closed.
package link

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
	stubs    func(*Session) recipes.Client
	sessions pb.SessionServiceClient
	grants   pb.GrantServiceClient
	meters   *telemetry.Meters

	ctx    context.Context // its cause is the reason why all sessions are lost
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	current  *Plugin
	resumes  bool          // present can resume sessions of another plugin
	replaced chan struct{} // closed, and replaced, when current changes
	closed   bool
	running  sync.WaitGroup // goroutines of sessions
}

// New returns a Client that can open sessions after the first Use. stubs returns the recipes of a
// session.
func New(stubs func(*Session) recipes.Client) *Client {
	c := &Client{
		stubs:    stubs,
		sessions: pb.NewSessionServiceClient(Router{}),
		grants:   pb.NewGrantServiceClient(Router{}),
		replaced: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// Measure makes m count the sessions opened from now on, and their grants. Call it before
// the first Open.
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
