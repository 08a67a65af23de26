package server

import (
	"context"

	"github.com/google/uuid"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func barrier(t target) (recipes.Barrier, error) { return t.Barrier(t.path) }

func (s service) SetBarrier(ctx context.Context, r *pb.SetBarrierRequest) (*pb.SetBarrierResponse, error) {
	return &pb.SetBarrierResponse{}, do(s.Server, r, barrier, func(b recipes.Barrier) error { return b.Set(ctx, r.GetData()) })
}

func (s service) RemoveBarrier(ctx context.Context, r *pb.RemoveBarrierRequest) (*pb.RemoveBarrierResponse, error) {
	return &pb.RemoveBarrierResponse{}, do(s.Server, r, barrier, func(b recipes.Barrier) error { return b.Remove(ctx) })
}

func (s service) WaitBarrier(ctx context.Context, r *pb.WaitBarrierRequest) (*pb.WaitBarrierResponse, error) {
	return &pb.WaitBarrierResponse{}, do(s.Server, r, barrier, func(b recipes.Barrier) error { return b.Wait(ctx) })
}

func (s service) GetBarrier(ctx context.Context, r *pb.GetBarrierRequest) (*pb.GetBarrierResponse, error) {
	set, err := with(s.Server, r, barrier, func(b recipes.Barrier) (bool, error) { return b.IsSet(ctx) })
	return &pb.GetBarrierResponse{Set: set}, err
}

func enterDoubleBarrier(ctx context.Context, t target, r *pb.AcquireRequest, m *pb.DoubleBarrier, joined func(recipes.Place)) (*grant, error) {
	b, err := t.DoubleBarrier(t.path, recipes.DoubleBarrierConfig{Size: int(m.GetSize()), Dialect: t.dialect})
	switch {
	case err != nil:
		return nil, err
	case r.GetTry():
		return nil, errNoTry
	}
	p, err := enterOrResume(ctx, b, r, joined)
	return &grant{Grant: p, release: func(ctx context.Context) error { return leaveAtOnce(ctx, p) }}, err
}

// resumableBarrier is a double barrier whose members can be resumed in another plugin.
type resumableBarrier interface {
	EnterAnnounced(ctx context.Context, guid uuid.UUID, data []byte, joined func(recipes.Place)) (recipes.Passage, error)
	ResumeUnannounced(ctx context.Context, guid uuid.UUID, joined func(recipes.Place)) (recipes.Passage, error)
	ResumeWaiting(ctx context.Context, znode string, joined func(recipes.Place)) (recipes.Passage, error)
	Resume(ctx context.Context, znode string, token recipes.Token) (recipes.Passage, error)
	ResumeLeaving(ctx context.Context, znode string, token recipes.Token, members []string) (recipes.Passage, error)
}

func enterOrResume(ctx context.Context, b recipes.DoubleBarrier, r *pb.AcquireRequest, joined func(recipes.Place)) (recipes.Passage, error) {
	m, able := b.(resumableBarrier)
	resumed, leaving := r.GetResumed(), r.GetDoubleBarrier().GetLeaving()
	znode, token := resumed.GetZnode(), recipes.Token(resumed.GetToken())
	guid := uuid.NewSHA1(uuid.Nil, []byte(r.GetSession()+" "+r.GetRequestId())) // the next plugin finds the member by it
	switch {
	case resumed == nil && !able:
		return b.Enter(ctx, r.GetData())
	case resumed == nil:
		return m.EnterAnnounced(ctx, guid, r.GetData(), joined)
	case !able:
		return nil, errNotResumed
	case len(leaving) > 0:
		return m.ResumeLeaving(ctx, znode, token, leaving)
	case token == 0 && znode == "":
		return m.ResumeUnannounced(ctx, guid, joined)
	case token == 0:
		return m.ResumeWaiting(ctx, znode, joined)
	}
	return m.Resume(ctx, znode, token)
}

// leaveAtOnce leaves without waiting for the other members.
func leaveAtOnce(ctx context.Context, p recipes.Passage) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return p.Leave(ctx)
}

const noPassage = "no place in a double barrier"

func (s service) LeaveDoubleBarrier(ctx context.Context, r *pb.LeaveDoubleBarrierRequest) (*pb.LeaveDoubleBarrierResponse, error) {
	if leaving := r.GetLeaving(); leaving != nil {
		t, err := s.target(r)
		if err != nil {
			return nil, err
		}
		if _, unknown := t.acquisitions.granted(r.GetRequestId()); unknown != nil {
			return &pb.LeaveDoubleBarrierResponse{}, s.awaitOthers(ctx, leaving)
		}
	}
	return &pb.LeaveDoubleBarrierResponse{}, withGrant(s.Server, r, noPassage, func(ss *session, c *acquisition, p recipes.Passage) error {
		err := p.Leave(ctx)
		ss.acquisitions.finished(c)
		return err
	})
}

// awaitOthers waits until the members that entered with one have left. That member had begun to
// leave in another plugin, and DropRest has deleted its znode.
func (s service) awaitOthers(ctx context.Context, r *pb.AcquireRequest) error {
	t, err := s.target(r)
	if err != nil {
		return err
	}
	b, err := t.DoubleBarrier(t.path, recipes.DoubleBarrierConfig{Size: int(r.GetDoubleBarrier().GetSize()), Dialect: t.dialect})
	if err != nil {
		return err
	}
	m, able := b.(resumableBarrier)
	if !able {
		return errNotResumed
	}
	p, err := m.ResumeLeaving(ctx, r.GetResumed().GetZnode(), recipes.Token(r.GetResumed().GetToken()), r.GetDoubleBarrier().GetLeaving())
	if err != nil {
		return err
	}
	return p.Leave(ctx)
}
