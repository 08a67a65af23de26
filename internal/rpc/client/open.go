package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// openGrace is how much longer than its deadline Open waits for the plugin to
// say what the last attempt met. The plugin has the same deadline.
const openGrace = 250 * time.Millisecond

// Open opens a session. It is a recipes.Opener.
func (c *Client) Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Session, error) {
	cfg, err := cfg.Normalize()
	if err != nil {
		return nil, err
	}
	if _, err := proto.Marshal(wire.ToConfig(cfg)); err != nil {
		return nil, fmt.Errorf("%w: config: Digest, ACL or TLS.ServerName is not UTF-8, and cannot be sent to a plugin", recipes.ErrInvalid)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
		defer cancel()
	}
	if err := c.failure(); err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	return c.open(ctx, cfg)
}

func (c *Client) open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Session, error) {
	calls := c.callStream()
	// The stream outlives ctx, which bounds only the opening.
	streamCtx, hangUp := context.WithCancel(c.ctx)
	stopWaiting := giveUp(ctx, hangUp)
	st, opened, err := c.begin(ctx, streamCtx, cfg)
	if !stopWaiting() && err == nil {
		err = context.Canceled
	}
	if err != nil {
		hangUp()
		return nil, c.openError(ctx, err)
	}
	s := newSession(c, st, hangUp, opened, calls)
	if err := s.run(ctx); err != nil {
		hangUp()
		return nil, fmt.Errorf("open session: %w", err)
	}
	return s, nil
}

// callStream returns the stream of calls. It starts one if there is none. Whether the
// plugin knows such streams is known when the stream is settled.
func (c *Client) callStream() *carry.Stream {
	calls, fresh := c.conn.Start()
	if fresh && !c.spawn(func() { calls.Run(c.ctx) }) {
		calls.Run(c.ctx) // which has ended
	}
	return calls
}

// giveUp calls hangUp when ctx ends: at once if it was cancelled, and a little
// later if its deadline passed. stop ends that, and reports whether it was in
// time.
func giveUp(ctx context.Context, hangUp context.CancelFunc) (stop func() bool) {
	waiting, done := context.WithCancel(context.WithoutCancel(ctx))
	stopped := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			grace := time.NewTimer(openGrace)
			defer grace.Stop()
			select {
			case <-waiting.Done():
				return
			case <-grace.C:
			}
		}
		hangUp()
	})
	return func() bool {
		done()
		return stopped() || ctx.Err() == context.DeadlineExceeded
	}
}

func (c *Client) begin(ctx, streamCtx context.Context, cfg recipes.SessionConfig) (stream, *pb.Opened, error) {
	st, err := c.sessions.Open(streamCtx)
	if err != nil {
		return nil, nil, err
	}
	deadline, _ := ctx.Deadline()
	// The plugin gives up a little before the host does, so that its reason
	// arrives: only the plugin knows what the last attempt met.
	left := time.Until(deadline)
	start := &pb.Start{Config: wire.ToConfig(cfg), OpenTimeout: durationpb.New(left - min(left/10, 250*time.Millisecond))}
	// A failed Send is explained by Recv.
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

// openError says why no session was opened.
func (c *Client) openError(ctx context.Context, err error) error {
	e, said := wire.Error(err)
	switch {
	case said: // and names the operation already
		return e
	case errors.Is(err, recipes.ErrInternal), errors.Is(e, recipes.ErrTooLarge): // refused unread
	case c.failure() != nil:
		e = c.failure()
	case errors.Is(ctx.Err(), context.Canceled):
		e = ctx.Err()
	case ctx.Err() != nil:
		e = fmt.Errorf("%w: the plugin did not answer: %w", recipes.ErrUnavailable, ctx.Err())
	default:
		e = fmt.Errorf("%w: %w: %w", recipes.ErrUnavailable, recipes.ErrPluginLost, e)
	}
	return fmt.Errorf("open session: %w", e)
}
