package client

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type doubleBarrier struct {
	s    *session
	rpc  pb.DoubleBarrierServiceClient
	path string
	size int

	dialect string // as wire.ToDialect has it
}

func (s *session) DoubleBarrier(path string, cfg recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	dialect, err := wire.ToDialect(cfg.Dialect)
	if err != nil {
		return nil, err
	}
	return &doubleBarrier{s: s, rpc: pb.NewDoubleBarrierServiceClient(s.conn), path: path, size: cfg.Size, dialect: dialect}, nil
}

func (b *doubleBarrier) Path() string { return b.path }
func (b *doubleBarrier) Size() int    { return b.size }

func (b *doubleBarrier) Enter(ctx context.Context, data []byte) (recipes.Passage, error) {
	if err := b.s.hasDialect(ctx, b.what(), b.dialect); err != nil {
		return nil, err
	}
	var members []string
	g, err := b.s.contend(ctx, "double-barrier", b.what(), false, nil, func(ctx context.Context, id string, _ *pb.Grant) (answer, error) {
		r, err := b.rpc.EnterDoubleBarrier(ctx, &pb.EnterDoubleBarrierRequest{
			Session: b.s.handle, RequestId: id, Path: b.path, Size: int64(b.size), Data: data, Dialect: b.dialect,
		})
		members = r.GetMembers()
		return unplaced{r}, err
	})
	if err != nil {
		return nil, err
	}
	g.Done() // a member's removal is always noticed
	return &passage{grant: g, barrier: b, members: members}, nil
}

func (b *doubleBarrier) what() string { return "double barrier " + b.path }

type passage struct {
	*grant
	barrier *doubleBarrier
	members []string
}

func (p *passage) Members() []string { return append([]string(nil), p.members...) }

func (p *passage) Leave(ctx context.Context) error {
	p.s.checkClock()
	p.s.forget(p.id)
	p.lose(recipes.ErrReleased)
	_, err := p.s.once(ctx, 0, func(ctx context.Context) error {
		_, err := p.barrier.rpc.LeaveDoubleBarrier(ctx, &pb.LeaveDoubleBarrierRequest{Session: p.s.handle, RequestId: p.id})
		return err
	})
	if err == nil {
		return nil
	}
	if _, said := wire.Error(err); !said {
		p.s.abandon(p.id) // the call may not have arrived
	}
	return notHeld(p.s.explain(ctx, p.barrier.what()+": leave", err))
}
