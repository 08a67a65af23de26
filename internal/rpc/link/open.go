package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// openGrace: after its deadline, Open waits this long for the plugin to report the result
// of the last attempt. The plugin's deadline is slightly earlier: see start.
const openGrace = 250 * time.Millisecond

// Open opens a session. It is a recipes.Opener.
func (c *Client) Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	return c.Plugin().Open(ctx, cfg)
}

// Open opens a session through this plugin, like Client.Open.
func (p *Plugin) Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	cfg, err := cfg.Normalize()
	if err != nil {
		return nil, err
	}
	if _, err := proto.Marshal(wire.ToConfig(cfg)); err != nil {
		return nil, fmt.Errorf("%w: config: Digest, SASL, ACL or TLS.ServerName is not UTF-8, and cannot be sent to a plugin", recipes.ErrInvalid)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
		defer cancel()
	}
	if err := p.failure(); err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	return p.open(ctx, cfg)
}

func (p *Plugin) open(ctx context.Context, cfg recipes.SessionConfig) (_ recipes.Client, err error) {
	if !p.beginOpen(ctx) {
		return nil, p.openError(ctx, errors.New("its process has ended"))
	}
	defer p.endOpen() // after the first echo: before it the session cannot be moved
	gen, opened, err := p.openStream(ctx, cfg, nil)
	if err != nil {
		return nil, p.openError(ctx, err)
	}
	if cfg.ZooKeeperOnly && recipes.ServerKind(opened.GetServer()) != recipes.ServerZooKeeper {
		gen.cancelStream()
		return nil, fmt.Errorf("open session: %w: the plugin does not recognize the servers, and ZooKeeperOnly is set; install a newer plugin", recipes.ErrUnsupported)
	}
	s := newSession(p.client, cfg, gen, opened)
	p.addSession(s)
	if err := s.run(ctx); err != nil {
		gen.cancelStream()
		return nil, fmt.Errorf("open session: %w", err)
	}
	return p.client.stubs(s), nil
}

// giveUp calls cancelStream when ctx ends: at once after a cancellation, or openGrace after
// its deadline. stop prevents the call. It returns false if ctx was cancelled before.
func giveUp(ctx context.Context, cancelStream context.CancelFunc) (stop func() bool) {
	deadline, _ := ctx.Deadline()
	late := time.AfterFunc(time.Until(deadline)+openGrace, cancelStream)
	stopped := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancelStream()
		}
	})
	return func() bool {
		late.Stop()
		return stopped() || ctx.Err() == context.DeadlineExceeded
	}
}

func (p *Plugin) openStream(ctx context.Context, cfg recipes.SessionConfig, resume *pb.Resume) (*generation, *pb.Opened, error) {
	calls := p.callConnection()
	// The stream outlives ctx, which bounds only the opening.
	streamCtx, cancelStream := context.WithCancel(p.ctx)
	stopWaiting := giveUp(ctx, cancelStream)
	st, opened, err := p.start(ctx, streamCtx, cfg, resume)
	if !stopWaiting() && err == nil {
		err = context.Canceled
	}
	if err != nil {
		cancelStream()
		return nil, nil, err
	}
	return newGeneration(p, st, cancelStream, calls, opened), opened, nil
}

func (p *Plugin) start(ctx, streamCtx context.Context, cfg recipes.SessionConfig, resume *pb.Resume) (stream, *pb.Opened, error) {
	st, err := p.client.sessions.Open(p.to(streamCtx))
	if err != nil {
		return nil, nil, unserved{err}
	}
	deadline, _ := ctx.Deadline()
	// The plugin's deadline is slightly earlier than the host's, so that its reason arrives:
	// only the plugin knows the result of the last attempt.
	left := time.Until(deadline)
	start := &pb.Start{Config: wire.ToConfig(cfg), OpenTimeout: durationpb.New(left - min(left/10, 250*time.Millisecond)), Resume: resume}
	// Recv returns the reason of a failed Send.
	_ = st.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Start{Start: start}})
	m, err := st.Recv()
	if err != nil {
		return nil, nil, err
	}
	if m.GetOpened() == nil {
		return nil, nil, fmt.Errorf("%w: the plugin's first message is %T, not Opened", recipes.ErrInternal, m.GetMessage())
	}
	return st, m.GetOpened(), nil
}

func (p *Plugin) openError(ctx context.Context, err error) error {
	e, answered := wire.Error(err)
	switch {
	case answered: // the plugin's error already names the operation
		return e
	case errors.Is(err, recipes.ErrInternal), errors.Is(err, recipes.ErrUnsupported), errors.Is(e, recipes.ErrTooLarge): // refused before it was read
	case p.failure() != nil:
		e = p.failure()
	case errors.Is(ctx.Err(), context.Canceled):
		e = ctx.Err()
	case ctx.Err() != nil:
		e = fmt.Errorf("%w: the plugin did not answer: %w", recipes.ErrUnavailable, ctx.Err())
	default:
		e = fmt.Errorf("%w: %w: %w", recipes.ErrUnavailable, recipes.ErrPluginLost, e)
	}
	return fmt.Errorf("open session: %w", e)
}
