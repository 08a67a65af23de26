package client

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type transaction struct {
	s       *session
	path    string
	variant recipes.Variant
}

// site is the host's half of a participant.
type site struct {
	*transaction
	name       string
	payload    []byte
	membership string
}

func (s *session) Transaction(path string, cfg recipes.TransactionConfig) (recipes.Transaction, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	if path == "/" {
		return nil, fmt.Errorf("%w: the root is no transaction", recipes.ErrInvalid)
	}
	variant, err := recipes.ParseVariant(string(cfg.Variant))
	if err != nil {
		return nil, err
	}
	return &transaction{s: s, path: path, variant: variant}, nil
}

func (t *transaction) Path() string   { return t.path }
func (t *transaction) String() string { return "transaction " + t.path }

func (t *transaction) Begin(ctx context.Context, payload []byte, sites ...string) error {
	if err := recipes.ValidateSites(sites); err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	return t.s.changeAbandonably(ctx, t.String(), func(ctx context.Context, id string) error {
		_, err := t.s.transactions.BeginTransaction(ctx, &pb.BeginTransactionRequest{
			Session: t.s.handle, Path: t.path, Variant: string(t.variant), Payload: payload, Sites: sites, RequestId: id,
		})
		return err
	})
}

func (t *transaction) Coordinate(ctx context.Context) (recipes.Decision, error) {
	var d recipes.Decision
	err := t.s.changeAbandonably(ctx, t.String(), func(ctx context.Context, id string) error {
		r, err := t.s.transactions.CoordinateTransaction(ctx, &pb.CoordinateTransactionRequest{Session: t.s.handle, Path: t.path, RequestId: id})
		d = wire.Decision(r.GetDecision())
		return err
	})
	return d, err
}

func (t *transaction) Abort(ctx context.Context, reason string) (recipes.Decision, error) {
	var d recipes.Decision
	err := t.s.change(ctx, t.String(), func(ctx context.Context) error {
		r, err := t.s.transactions.AbortTransaction(ctx, &pb.AbortTransactionRequest{Session: t.s.handle, Path: t.path, Reason: wire.Text(reason)})
		d = wire.Decision(r.GetDecision())
		return err
	})
	return d, err
}

func (t *transaction) Join(ctx context.Context, name string) (recipes.Site, error) {
	joined := &site{transaction: t, name: name}
	err := t.s.changeAbandonably(ctx, t.String(), func(ctx context.Context, id string) error {
		r, err := t.s.transactions.JoinTransaction(ctx, &pb.JoinTransactionRequest{
			Session: t.s.handle, Path: t.path, Site: name, RequestId: id,
		})
		joined.payload, joined.membership = r.GetPayload(), r.GetMembership()
		return err
	})
	if err != nil {
		return nil, err
	}
	return joined, nil
}

func (t *transaction) Status(ctx context.Context) (recipes.TransactionStatus, error) {
	return query(ctx, t.s, t.String(), func(ctx context.Context) (recipes.TransactionStatus, error) {
		r, err := t.s.transactions.GetTransaction(ctx, &pb.GetTransactionRequest{Session: t.s.handle, Path: t.path})
		return wire.TransactionStatus(r), err
	})
}

func (t *transaction) Forget(ctx context.Context) error {
	return t.s.change(ctx, t.String(), func(ctx context.Context) error {
		_, err := t.s.transactions.ForgetTransaction(ctx, &pb.ForgetTransactionRequest{Session: t.s.handle, Path: t.path})
		return err
	})
}

func (s *site) Name() string    { return s.name }
func (s *site) Payload() []byte { return s.payload }

func (s *site) Vote(ctx context.Context, vote recipes.Vote) error {
	if err := vote.Validate(); err != nil {
		return fmt.Errorf("%s: %w", s.transaction, err)
	}
	return s.s.change(ctx, s.String(), func(ctx context.Context) error {
		_, err := s.s.transactions.VoteTransaction(ctx, &pb.VoteTransactionRequest{
			Session: s.s.handle, Membership: s.membership, Vote: string(vote),
		})
		return err
	})
}

func (s *site) Wait(ctx context.Context) (recipes.Decision, error) {
	var d recipes.Decision
	err := s.s.changeAbandonably(ctx, s.String(), func(ctx context.Context, id string) error {
		r, err := s.s.transactions.AwaitDecision(ctx, &pb.AwaitDecisionRequest{
			Session: s.s.handle, Membership: s.membership, RequestId: id,
		})
		d = wire.Decision(r.GetDecision())
		return err
	})
	return d, err
}

func (s *site) Done(ctx context.Context) error {
	return s.s.change(ctx, s.String(), func(ctx context.Context) error {
		_, err := s.s.transactions.FinishSite(ctx, &pb.FinishSiteRequest{Session: s.s.handle, Membership: s.membership})
		return err
	})
}
