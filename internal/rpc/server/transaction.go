package server

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type transactionService struct {
	pb.UnimplementedTransactionServiceServer
	*Server
}

func (s transactionService) transaction(handle, path, variant string) (*session, recipes.Transaction, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, nil, err
	}
	t, err := ss.Transaction(path, recipes.TransactionConfig{Variant: recipes.Variant(variant)})
	return ss, t, err
}

// site finds a site by its membership.
func (s transactionService) site(handle, membership string) (*session, recipes.Site, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, nil, err
	}
	if site, ok := ss.memberships.get(membership); ok {
		return ss, site, nil
	}
	return nil, nil, errNoMembership(membership)
}

// begun undoes a beginning whose answer was lost. The session is coordinator, does
// not count, and would keep the sites waiting. A Coordinate that fails gives the
// place up.
func begun(t recipes.Transaction) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = t.Coordinate(ended)
}

func (s transactionService) BeginTransaction(ctx context.Context, r *pb.BeginTransactionRequest) (*pb.BeginTransactionResponse, error) {
	ss, t, err := s.transaction(r.GetSession(), r.GetPath(), r.GetVariant())
	if err != nil {
		return nil, err
	}
	ctx, end := ss.patient(ctx, r)
	defer end()
	id, err := ss.begin(ctx, t, r)
	if err != nil {
		return nil, err
	}
	ss.tickets.undoable(repeatable(ctx, r.GetResumed()), r.GetRequestId(), func() { begun(t) })
	return &pb.BeginTransactionResponse{Transaction: id}, nil
}

// repeatable is the context of undoable. What was taken up stays, though its call was cut
// off: the host calls again, or abandons it.
func repeatable(ctx context.Context, resumed string) context.Context {
	if resumed == "" {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

func (s transactionService) CoordinateTransaction(ctx context.Context, r *pb.CoordinateTransactionRequest) (*pb.CoordinateTransactionResponse, error) {
	ss, t, err := s.transaction(r.GetSession(), r.GetPath(), "")
	if err != nil {
		return nil, err
	}
	ctx, end := ss.patient(ctx, r)
	defer end()
	d, err := coordinate(ctx, t, r)
	return &pb.CoordinateTransactionResponse{Decision: wire.ToDecision(&d)}, err
}

func (s transactionService) AbortTransaction(ctx context.Context, r *pb.AbortTransactionRequest) (*pb.AbortTransactionResponse, error) {
	_, t, err := s.transaction(r.GetSession(), r.GetPath(), "")
	if err != nil {
		return nil, err
	}
	d, err := t.Abort(ctx, r.GetReason())
	return &pb.AbortTransactionResponse{Decision: wire.ToDecision(&d)}, err
}

func (s transactionService) JoinTransaction(ctx context.Context, r *pb.JoinTransactionRequest) (*pb.JoinTransactionResponse, error) {
	ss, t, err := s.transaction(r.GetSession(), r.GetPath(), "")
	if err != nil {
		return nil, err
	}
	ctx, end := ss.patient(ctx, r)
	defer end()
	site, membership, err := ss.join(ctx, t, r)
	if err != nil {
		return nil, err
	}
	ss.tickets.undoable(repeatable(ctx, r.GetResumed()), r.GetRequestId(), func() { ss.memberships.forget(membership) })
	return &pb.JoinTransactionResponse{Payload: site.Payload(), Membership: membership}, nil
}

func (s transactionService) VoteTransaction(ctx context.Context, r *pb.VoteTransactionRequest) (*pb.VoteTransactionResponse, error) {
	_, site, err := s.site(r.GetSession(), r.GetMembership())
	if err == nil {
		err = site.Vote(ctx, recipes.Vote(r.GetVote()))
	}
	return &pb.VoteTransactionResponse{}, err
}

func (s transactionService) AwaitDecision(ctx context.Context, r *pb.AwaitDecisionRequest) (*pb.AwaitDecisionResponse, error) {
	ss, site, err := s.site(r.GetSession(), r.GetMembership())
	if err != nil {
		return nil, err
	}
	ctx, end := ss.patient(ctx, r)
	defer end()
	d, err := site.Wait(ctx)
	return &pb.AwaitDecisionResponse{Decision: wire.ToDecision(&d)}, err
}

// FinishSite may be repeated: a membership that is not found has finished. In a session
// that was resumed it may also be one that was not taken up.
func (s transactionService) FinishSite(ctx context.Context, r *pb.FinishSiteRequest) (*pb.FinishSiteResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	site, ok := ss.memberships.get(r.GetMembership())
	switch {
	case ok:
		err = site.Done(ctx)
	case ss.resumed && !ss.memberships.hasFinished(r.GetMembership()):
		err = errNoMembership(r.GetMembership())
	}
	if err != nil {
		return nil, err
	}
	ss.memberships.finish(r.GetMembership())
	return &pb.FinishSiteResponse{}, nil
}

func (s transactionService) ForgetTransaction(ctx context.Context, r *pb.ForgetTransactionRequest) (*pb.ForgetTransactionResponse, error) {
	_, t, err := s.transaction(r.GetSession(), r.GetPath(), "")
	if err == nil {
		err = t.Forget(ctx)
	}
	return &pb.ForgetTransactionResponse{}, err
}

func (s transactionService) GetTransaction(ctx context.Context, r *pb.GetTransactionRequest) (*pb.GetTransactionResponse, error) {
	_, t, err := s.transaction(r.GetSession(), r.GetPath(), "")
	if err != nil {
		return nil, err
	}
	status, err := t.Status(ctx)
	return wire.ToTransactionStatus(status), err
}
