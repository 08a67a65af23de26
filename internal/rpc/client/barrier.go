package client

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var (
	barrierService       = pb.NewBarrierServiceClient(link.Router{})
	doubleBarrierService = pb.NewDoubleBarrierServiceClient(link.Router{})
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
	return change(ctx, b.recipe, link.AtMostOnce(), barrierService.SetBarrier, &pb.SetBarrierRequest{Session: b.s.Handle(), Path: b.path, Data: data})
}

func (b barrier) Remove(ctx context.Context) error {
	return change(ctx, b.recipe, link.AtMostOnce(), barrierService.RemoveBarrier, &pb.RemoveBarrierRequest{Session: b.s.Handle(), Path: b.path})
}

func (b barrier) Wait(ctx context.Context) error {
	_, err := read(ctx, b.recipe, barrierService.WaitBarrier, &pb.WaitBarrierRequest{Session: b.s.Handle(), Path: b.path}, nothing)
	return err
}

func (b barrier) IsSet(ctx context.Context) (bool, error) {
	return read(ctx, b.recipe, barrierService.GetBarrier, &pb.GetBarrierRequest{Session: b.s.Handle(), Path: b.path}, (*pb.GetBarrierResponse).GetSet)
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
	return &passage{Grant: g, barrier: b, members: a.GetEntered().GetMembers()}, nil
}

type passage struct {
	*link.Grant
	barrier doubleBarrier
	members []string
	again   *pb.AcquireRequest // resumes the member as a leaving one; nil before the first Leave
}

func (p *passage) Members() []string { return append([]string(nil), p.members...) }

// Leave is repeated if its plugin ends and the session continues. While it runs, the next
// plugin resumes the member as a leaving one. After an error no plugin does, so a later call sends
// what one needs to wait for the others.
func (p *passage) Leave(ctx context.Context) error {
	leaving := p.Request()
	leaving.GetDoubleBarrier().Leaving = p.members
	r := &pb.LeaveDoubleBarrierRequest{Session: p.barrier.s.Handle(), RequestId: p.ID(), Leaving: p.again}
	p.again = proto.CloneOf(leaving)
	p.again.Resumed = &pb.Grant{Token: int64(p.Token()), Znode: p.Znode()}
	return link.Leave(ctx, p.Grant, p.barrier.what+": leave", leaving, doubleBarrierService.LeaveDoubleBarrier, r)
}
