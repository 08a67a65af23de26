package link

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Plugin is a connection to one plugin process.
type Plugin struct {
	client *Client
	conn   *carry.Conn
	died   func(context.Context) bool // nil if no session outlives it

	ctx    context.Context // its cause is the reason why its sessions are lost
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	paused   chan struct{} // while not nil, Open waits until it is closed
	opening  int
	opened   chan struct{}     // holds one element when opening has become 0
	sessions map[*Session]bool // the sessions that the plugin serves

	processEnded context.Context // ends when its process has ended and opens no more sessions
	endProcess   context.CancelFunc
	empty        context.Context // ends when its process has ended and it serves no session
	setEmpty     context.CancelFunc
}

// Connect returns a connection to another plugin process, which
// the caller owns. If it was dialled with DialOptions, unary calls use a separate connection from
// dial. If dial is nil or fails, unary calls use gRPC. After Use, the client opens sessions
// through the plugin.
//
// The client calls died when the stream of a session has ended without reporting the loss.
// It must return true only if the process has ended and was waited for, and did nothing
// after the end of the stream. Only then is it certain that it has not closed the session.
// Otherwise died returns false, without a long wait.
//
// If died is nil, or returns false, the session is lost. If died returns true, the session
// continues when Use names another plugin that can resume it, and is lost if that does not
// happen before the session's deadline.
func (c *Client) Connect(over grpc.ClientConnInterface, dial carry.Dialer, died func(context.Context) bool) *Plugin {
	p := &Plugin{
		client: c, conn: carry.New(over, dial), died: died, sessions: make(map[*Session]bool),
		opened: make(chan struct{}, 1),
	}
	p.processEnded, p.endProcess = context.WithCancel(context.Background())
	p.empty, p.setEmpty = context.WithCancel(context.Background())
	p.ctx, p.cancel = context.WithCancelCause(c.ctx)
	return p
}

// Use makes p the plugin that opens sessions, and that resumes the sessions whose plugin has
// died. resumes says whether p has the capability to resume.
func (c *Client) Use(p *Plugin, resumes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.resumes = p, resumes
	close(c.replaced)
	c.replaced = make(chan struct{})
}

// Fail ends the sessions that this plugin serves, like Client.Fail.
func (p *Plugin) Fail(reason error) { p.cancel(reason) }

// ProcessEnded must be called when the plugin's process has ended. It returns when no session
// reads from the plugin any more. A session first reads the messages that the process sent
// before its end, and then the end of the stream. If something keeps the streams open, the
// caller should end ctx; the sessions on them are then lost.
func (p *Plugin) ProcessEnded(ctx context.Context) {
	p.mu.Lock()
	p.endProcess()
	p.checkEmpty()
	p.mu.Unlock()
	select {
	case <-p.empty.Done():
	case <-ctx.Done():
	}
	p.cancel(fmt.Errorf("%w: its process has ended", recipes.ErrPluginLost))
	<-p.empty.Done()
}

// beginOpen counts a session that is about to be opened. It waits while the plugin is paused.
// It returns false if the session cannot be opened there.
func (p *Plugin) beginOpen(ctx context.Context) bool {
	for {
		p.mu.Lock()
		paused := p.paused
		if paused == nil || p.processEnded.Err() != nil {
			defer p.mu.Unlock()
			if p.processEnded.Err() != nil {
				return false
			}
			p.opening++
			return true
		}
		p.mu.Unlock()
		select {
		case <-paused:
		case <-p.processEnded.Done():
		case <-p.ctx.Done():
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// endOpen ends the count of beginOpen. If a session was opened, the caller calls addSession
// first.
func (p *Plugin) endOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opening--; p.opening == 0 {
		signal(p.opened)
	}
	p.checkEmpty()
}

func (p *Plugin) addSession(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[s] = true
}

func (p *Plugin) removeSession(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, s)
	p.checkEmpty()
}

// checkEmpty ends empty if its condition holds. The caller holds mu.
func (p *Plugin) checkEmpty() {
	if p.processEnded.Err() != nil && p.opening == 0 && len(p.sessions) == 0 {
		p.setEmpty()
	}
}

// failure returns the reason why the plugin opens no sessions, or nil.
func (p *Plugin) failure() error {
	if p.ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", recipes.ErrUnavailable, context.Cause(p.ctx))
}

// callConnection returns the connection for calls, and opens one if needed. When its Settled
// closes, it is known whether the plugin supports such connections.
func (p *Plugin) callConnection() *carry.Calls {
	calls, fresh := p.conn.Start()
	if fresh && !p.client.spawn(func() { calls.Run(p.ctx) }) {
		calls.Run(p.ctx) // returns at once: the client is closed, so ctx has ended
	}
	return calls
}

// Router is a connection for generated stubs. It sends a call to the plugin that serves the
// session for which Read, Write or Stream makes the call. Any other call fails.
type Router struct{}

type pluginKey struct{}

// to names the plugin of a call.
func (p *Plugin) to(ctx context.Context) context.Context {
	return context.WithValue(ctx, pluginKey{}, p)
}

// errNoPlugin is the error of a call that was made without this package.
var errNoPlugin = status.Error(codes.Internal, "the call names no plugin")

// Invoke implements grpc.ClientConnInterface.
func (Router) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	p, ok := ctx.Value(pluginKey{}).(*Plugin)
	if !ok {
		return errNoPlugin
	}
	return p.conn.Invoke(ctx, method, request, reply, options...)
}

// NewStream implements grpc.ClientConnInterface.
func (Router) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	p, ok := ctx.Value(pluginKey{}).(*Plugin)
	if !ok {
		return nil, errNoPlugin
	}
	return p.conn.NewStream(ctx, desc, method, options...)
}
