package client

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type barrier struct{ recipe }

func (s *session) Barrier(path string) (recipes.Barrier, error) {
	r, err := s.at("barrier", path, "", notRoot(path, "the root always exists, so this barrier could never be removed"))
	if err != nil {
		return nil, err
	}
	return barrier{r}, nil
}

func (b barrier) Set(ctx context.Context, data []byte) error {
	return change(ctx, b.recipe, sentOnce, b.s.barriers.SetBarrier, &pb.SetBarrierRequest{Session: b.s.handle, Path: b.path, Data: data})
}

func (b barrier) Remove(ctx context.Context) error {
	return change(ctx, b.recipe, sentOnce, b.s.barriers.RemoveBarrier, &pb.RemoveBarrierRequest{Session: b.s.handle, Path: b.path})
}

func (b barrier) Wait(ctx context.Context) error {
	_, err := read(ctx, b.recipe, b.s.barriers.WaitBarrier, &pb.WaitBarrierRequest{Session: b.s.handle, Path: b.path}, nothing)
	return err
}

func (b barrier) IsSet(ctx context.Context) (bool, error) {
	return read(ctx, b.recipe, b.s.barriers.GetBarrier, &pb.GetBarrierRequest{Session: b.s.handle, Path: b.path}, (*pb.GetBarrierResponse).GetSet)
}

type doubleBarrier struct {
	recipe
	size int
}

func (s *session) DoubleBarrier(path string, cfg recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	r, err := s.at("double barrier", path, cfg.Dialect, cfg.Validate())
	if err != nil {
		return nil, err
	}
	return doubleBarrier{r, cfg.Size}, nil
}

func (b doubleBarrier) Size() int { return b.size }

func (b doubleBarrier) Enter(ctx context.Context, data []byte) (recipes.Passage, error) {
	m := &pb.AcquireRequest_DoubleBarrier{DoubleBarrier: &pb.DoubleBarrier{Size: int64(b.size)}}
	g, a, err := b.acquire(ctx, "double-barrier", &pb.AcquireRequest{Data: data, Recipe: m}, nil)
	if err != nil {
		return nil, err
	}
	g.Done() // the removal of a member is always reported
	return &passage{g, b, a.GetEntered().GetMembers()}, nil
}

type passage struct {
	*remoteGrant
	barrier doubleBarrier
	members []string
}

func (p *passage) Members() []string { return append([]string(nil), p.members...) }

// Leave is repeated if its plugin ends and the session continues. While it runs, the next
// plugin resumes the member as a leaving one. After an error no plugin resumes the member,
// and DropRest deletes its znode.
func (p *passage) Leave(ctx context.Context) error {
	p.s.checkClock()
	p.leave()
	p.lose(recipes.ErrReleased)
	err := p.s.complete(ctx, callOptions{}, func(ctx context.Context) error {
		_, err := p.s.doubleBarriers.LeaveDoubleBarrier(ctx, &pb.LeaveDoubleBarrierRequest{Session: p.s.handle, RequestId: p.id})
		return err
	})
	p.s.forget(p.id)
	if err == nil {
		return nil
	}
	if _, answered := wire.Error(err); !answered || p.s.resumable {
		p.s.abandon(p.id) // the call may not have reached the plugin that has the member now
	}
	return notHeld(p.s.explain(ctx, p.barrier.what+": leave", err))
}

// leave makes the next plugin resume the member as a leaving one.
func (p *passage) leave() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.request = proto.CloneOf(p.request)
	p.request.GetDoubleBarrier().Leaving = p.members
	p.s.endGrant(p.id)
}
