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

// transaction opens a transaction. Only Begin needs the variant.
func transaction(variant string) func(target) (recipes.Transaction, error) {
	return func(t target) (recipes.Transaction, error) {
		return t.Transaction(t.path, recipes.TransactionConfig{Variant: recipes.Variant(variant)})
	}
}

// site finds a site by its membership.
func site(r interface{ GetMembership() string }) func(target) (recipes.Site, error) {
	return func(t target) (recipes.Site, error) {
		if site, ok := t.memberships.get(r.GetMembership()); ok {
			return site, nil
		}
		return nil, errNoMembership(r.GetMembership())
	}
}

// undoBegin undoes a Begin whose answer was lost. Otherwise the session would remain the
// coordinator without counting votes, and the sites would wait. It calls Coordinate with an
// ended context: a Coordinate that fails ends the session's role.
func undoBegin(t recipes.Transaction) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = t.Coordinate(ended)
}

func (s transactionService) BeginTransaction(ctx context.Context, r *pb.BeginTransactionRequest) (*pb.BeginTransactionResponse, error) {
	return patiently(ctx, s.Server, r, transaction(r.GetVariant()), func(ctx context.Context, ss *session, t recipes.Transaction) (*pb.BeginTransactionResponse, error) {
		id, err := ss.begin(ctx, t, r)
		if err != nil {
			return nil, err
		}
		ss.acquisitions.undoable(undoContext(ctx, r.GetResumed()), r.GetRequestId(), func() { undoBegin(t) })
		return &pb.BeginTransactionResponse{Transaction: id}, nil
	})
}

// undoContext returns the context for undoable. A call that resumes a role is not undone if it
// is cut off: the host calls again, or abandons the role.
func undoContext(ctx context.Context, resumed string) context.Context {
	if resumed == "" {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

func (s transactionService) CoordinateTransaction(ctx context.Context, r *pb.CoordinateTransactionRequest) (*pb.CoordinateTransactionResponse, error) {
	return patiently(ctx, s.Server, r, transaction(""), func(ctx context.Context, _ *session, t recipes.Transaction) (*pb.CoordinateTransactionResponse, error) {
		d, err := coordinate(ctx, t, r)
		return &pb.CoordinateTransactionResponse{Decision: wire.ToDecision(&d)}, err
	})
}

func (s transactionService) AbortTransaction(ctx context.Context, r *pb.AbortTransactionRequest) (*pb.AbortTransactionResponse, error) {
	return with(s.Server, r, transaction(""), func(t recipes.Transaction) (*pb.AbortTransactionResponse, error) {
		d, err := t.Abort(ctx, r.GetReason())
		return &pb.AbortTransactionResponse{Decision: wire.ToDecision(&d)}, err
	})
}

func (s transactionService) JoinTransaction(ctx context.Context, r *pb.JoinTransactionRequest) (*pb.JoinTransactionResponse, error) {
	return patiently(ctx, s.Server, r, transaction(""), func(ctx context.Context, ss *session, t recipes.Transaction) (*pb.JoinTransactionResponse, error) {
		site, membership, err := ss.join(ctx, t, r)
		if err != nil {
			return nil, err
		}
		ss.acquisitions.undoable(undoContext(ctx, r.GetResumed()), r.GetRequestId(), func() { ss.memberships.forget(membership) })
		return &pb.JoinTransactionResponse{Payload: site.Payload(), Membership: membership}, nil
	})
}

func (s transactionService) VoteTransaction(ctx context.Context, r *pb.VoteTransactionRequest) (*pb.VoteTransactionResponse, error) {
	return with(s.Server, r, site(r), func(site recipes.Site) (*pb.VoteTransactionResponse, error) {
		return &pb.VoteTransactionResponse{}, site.Vote(ctx, recipes.Vote(r.GetVote()))
	})
}

func (s transactionService) AwaitDecision(ctx context.Context, r *pb.AwaitDecisionRequest) (*pb.AwaitDecisionResponse, error) {
	return patiently(ctx, s.Server, r, site(r), func(ctx context.Context, _ *session, site recipes.Site) (*pb.AwaitDecisionResponse, error) {
		d, err := site.Wait(ctx)
		return &pb.AwaitDecisionResponse{Decision: wire.ToDecision(&d)}, err
	})
}

// FinishSite may be repeated: a membership that is not found has finished. In a resumed session
// it may also not have been resumed; memberships remembers which have finished.
func (s transactionService) FinishSite(ctx context.Context, r *pb.FinishSiteRequest) (*pb.FinishSiteResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	site, ok := ss.memberships.get(r.GetMembership())
	switch {
	case ok:
		err = site.Done(ctx)
	case ss.resumption.resumed() && !ss.memberships.hasFinished(r.GetMembership()):
		err = errNoMembership(r.GetMembership())
	}
	if err != nil {
		return nil, err
	}
	ss.memberships.finish(r.GetMembership())
	return &pb.FinishSiteResponse{}, nil
}

func (s transactionService) ForgetTransaction(ctx context.Context, r *pb.ForgetTransactionRequest) (*pb.ForgetTransactionResponse, error) {
	return with(s.Server, r, transaction(""), func(t recipes.Transaction) (*pb.ForgetTransactionResponse, error) {
		return &pb.ForgetTransactionResponse{}, t.Forget(ctx)
	})
}

func (s transactionService) GetTransaction(ctx context.Context, r *pb.GetTransactionRequest) (*pb.GetTransactionResponse, error) {
	return with(s.Server, r, transaction(""), func(t recipes.Transaction) (*pb.GetTransactionResponse, error) {
		status, err := t.Status(ctx)
		return wire.ToTransactionStatus(status), err
	})
}
