package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Plugin is a connection to one plugin process.
type Plugin struct {
	client *Client
	conn   *carry.Conn
	died   func(context.Context) bool // nil: no session outlives it
	speaks atomic.Bool                // it is known to have dialects

	ctx    context.Context // its cause is why the sessions that it serves are lost
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	paused   chan struct{} // sessions are opened when it is closed; nil: at once
	opening  int
	opened   chan struct{}     // holds one when opening has become 0
	sessions map[*session]bool // that it serves
	left     chan struct{}     // closed when its process has ended: it opens no more sessions
	empty    chan struct{}     // closed when it has left, and serves none
}

// Connect returns a connection to another plugin process, on the terms of New. The
// client opens sessions through it from Use on.
//
// died is called when the stream of a session has ended and did not tell the loss. It
// returns true when the process has ended, was waited for, and did nothing between the
// end of the stream and its own. Then it can have closed no session. In every other case
// it returns false, without waiting for long. If died is nil, or returns false, the
// session is lost. Otherwise it goes on when Use names another plugin that can resume
// it, or is lost at its own deadline.
func (c *Client) Connect(over grpc.ClientConnInterface, dial carry.Dialer, died func(context.Context) bool) *Plugin {
	p := &Plugin{
		client: c, conn: carry.New(over, dial), died: died, sessions: make(map[*session]bool),
		opened: make(chan struct{}, 1), left: make(chan struct{}), empty: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancelCause(c.ctx)
	return p
}

// Use has the client open sessions through p, and resume there those whose plugin has
// died. resumes is whether p has the capability to.
func (c *Client) Use(p *Plugin, resumes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.present, c.resumes = p, resumes
	close(c.replaced)
	c.replaced = make(chan struct{})
}

// Open is Client.Open through this plugin.
func (p *Plugin) Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	return p.client.openAt(ctx, p, cfg)
}

// Fail is Client.Fail for the sessions that this plugin serves.
func (p *Plugin) Fail(reason error) { p.cancel(reason) }

// Left is called when the plugin's process has ended. It returns when no session
// listens to it any more. The streams end by themselves: what was sent before the
// process ended is read. If something keeps them open, ctx should end, and then the
// sessions that they belong to are lost.
func (p *Plugin) Left(ctx context.Context) {
	p.mu.Lock()
	if !p.hasLeft() {
		close(p.left)
		p.check()
	}
	p.mu.Unlock()
	select {
	case <-p.empty:
	case <-ctx.Done():
	}
	p.cancel(fmt.Errorf("%w: its process has ended", recipes.ErrPluginLost))
	<-p.empty
}

func (p *Plugin) hasLeft() bool {
	select {
	case <-p.left:
		return true
	default:
		return false
	}
}

// enter counts a session that is about to be opened there. It waits while the plugin is
// paused.
func (p *Plugin) enter(ctx context.Context) bool {
	for {
		p.mu.Lock()
		paused := p.paused
		if paused == nil || p.hasLeft() {
			defer p.mu.Unlock()
			if p.hasLeft() {
				return false
			}
			p.opening++
			return true
		}
		p.mu.Unlock()
		select {
		case <-paused:
		case <-p.left:
		case <-p.ctx.Done():
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// entered ends what enter has begun. If there is a session, serves was called before.
func (p *Plugin) entered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opening--; p.opening == 0 {
		signal(p.opened)
	}
	p.check()
}

// serves notes that a session listens to it.
func (p *Plugin) serves(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[s] = true
}

// ended notes that a session listens to it no longer.
func (p *Plugin) ended(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, s)
	p.check()
}

// check needs mu.
func (p *Plugin) check() {
	if p.hasLeft() && p.opening == 0 && len(p.sessions) == 0 {
		select {
		case <-p.empty:
		default:
			close(p.empty)
		}
	}
}

// failure returns why the plugin opens no sessions, or nil.
func (p *Plugin) failure() error {
	if p.ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", recipes.ErrUnavailable, context.Cause(p.ctx))
}

// callConnection returns the connection for calls. It opens one if needed. Whether the
// plugin has such connections is known when it is settled.
func (p *Plugin) callConnection() *carry.Calls {
	calls, fresh := p.conn.Start()
	if fresh && !p.client.spawn(func() { calls.Run(p.ctx) }) {
		calls.Run(p.ctx) // which has ended
	}
	return calls
}

// router is a connection whose calls go to the plugin that their context names.
type router struct{ client *Client }

type pluginKey struct{}

// to names the plugin of a call.
func (p *Plugin) to(ctx context.Context) context.Context {
	return context.WithValue(ctx, pluginKey{}, p)
}

func (r router) conn(ctx context.Context) *carry.Conn {
	if p, ok := ctx.Value(pluginKey{}).(*Plugin); ok {
		return p.conn
	}
	return r.client.Plugin().conn
}

func (r router) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	return r.conn(ctx).Invoke(ctx, method, request, reply, options...)
}

func (r router) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	return r.conn(ctx).NewStream(ctx, desc, method, options...)
}
