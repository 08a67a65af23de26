package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type transaction struct {
	recipe
	variant recipes.Variant
}

// site is the host's half of a participant.
type site struct {
	*transaction
	part       part
	name       string
	payload    []byte
	membership string
}

func (s *session) Transaction(path string, cfg recipes.TransactionConfig) (recipes.Transaction, error) {
	r, err := s.at("transaction", path, "")
	if err != nil {
		return nil, err
	}
	if path == "/" {
		return nil, fmt.Errorf("%w: the root is no transaction", recipes.ErrInvalid)
	}
	variant, err := recipes.ParseVariant(string(cfg.Variant))
	if err != nil {
		return nil, err
	}
	return &transaction{r, variant}, nil
}

// Begin is not repeated: a plugin that has ended may have begun. Nobody counts the votes
// there until a site does.
func (t *transaction) Begin(ctx context.Context, payload []byte, sites ...string) error {
	if err := recipes.ValidateSites(sites); err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	place := &part{}
	err := t.s.changeAbandonably(ctx, t.what, t.s.changing, func(ctx context.Context, id string) error {
		ask := &pb.BeginTransactionRequest{
			Session: t.s.handle, Path: t.path, Variant: string(t.variant), Payload: payload, Sites: sites, RequestId: id,
		}
		r, err := t.s.transactions.BeginTransaction(ctx, ask)
		place.request, place.name = id, r.GetTransaction()
		return err
	})
	if err != nil || place.name == "" {
		return err
	}
	place.ask = func(ctx context.Context) error {
		_, err := t.s.transactions.BeginTransaction(ctx, &pb.BeginTransactionRequest{
			Session: t.s.handle, Path: t.path, RequestId: place.request, Resumed: place.name,
		})
		return err
	}
	t.s.has(t.coordinator(), place)
	return nil
}

// coordinator is the key of the coordinator's place. That of a site does not begin with a
// slash.
func (t *transaction) coordinator() string { return t.path }

// Coordinate is repeated for the transaction that this session has begun. Any other one
// may be over by then, and its successor is not to be mistaken for it.
func (t *transaction) Coordinate(ctx context.Context) (recipes.Decision, error) {
	place, made := t.s.part(t.coordinator()), t.s.changing
	if place != nil {
		made = t.s.repeating(answers)
	}
	var d recipes.Decision
	calls := 0
	err := t.s.changeAbandonably(ctx, t.what, made, func(ctx context.Context, id string) error {
		ask := &pb.CoordinateTransactionRequest{Session: t.s.handle, Path: t.path, RequestId: id}
		if calls++; calls > 1 && place != nil {
			ask.Transaction = place.name
		}
		r, err := t.s.transactions.CoordinateTransaction(ctx, ask)
		d = wire.Decision(r.GetDecision())
		return err
	})
	if place != nil {
		t.s.dropPart(t.coordinator(), place, err)
		if err != nil { // the plugin that was to give up the place may have ended
			t.s.abandon(place.request)
		}
	}
	return d, err
}

// Abort is not repeated: the transaction may be over by then, and another one have begun.
func (t *transaction) Abort(ctx context.Context, reason string) (recipes.Decision, error) {
	return write(ctx, t.recipe, t.s.transactions.AbortTransaction,
		&pb.AbortTransactionRequest{Session: t.s.handle, Path: t.path, Reason: wire.Text(reason)},
		func(a *pb.AbortTransactionResponse) recipes.Decision { return wire.Decision(a.GetDecision()) })
}

func (t *transaction) Join(ctx context.Context, name string) (recipes.Site, error) {
	joined := &site{transaction: t, name: name}
	j, key := newJoining(nil), t.s.requestID()
	j.anew = true
	t.s.expect(key, j)
	defer t.s.unexpect(key, j)
	err := t.s.changeAbandonably(ctx, t.what, t.s.inTurn(j), func(ctx context.Context, id string) error {
		r, err := t.s.transactions.JoinTransaction(ctx, &pb.JoinTransactionRequest{
			Session: t.s.handle, Path: t.path, Site: name, RequestId: id,
		})
		joined.payload, joined.membership = r.GetPayload(), r.GetMembership()
		return err
	})
	if err != nil {
		return nil, err
	}
	joined.part.ask = func(ctx context.Context) error {
		_, err := t.s.transactions.JoinTransaction(ctx, &pb.JoinTransactionRequest{
			Session: t.s.handle, Path: t.path, Site: name, Resumed: joined.membership,
		})
		return err
	}
	t.s.has(joined.membership, &joined.part)
	return joined, nil
}

func (t *transaction) Status(ctx context.Context) (recipes.TransactionStatus, error) {
	return read(ctx, t.recipe, t.s.transactions.GetTransaction,
		&pb.GetTransactionRequest{Session: t.s.handle, Path: t.path}, wire.TransactionStatus)
}

func (t *transaction) Forget(ctx context.Context) error {
	_, err := write(ctx, t.recipe, t.s.transactions.ForgetTransaction,
		&pb.ForgetTransactionRequest{Session: t.s.handle, Path: t.path}, nothing)
	return err
}

func (s *site) Name() string    { return s.name }
func (s *site) Payload() []byte { return s.payload }

func (s *site) Vote(ctx context.Context, vote recipes.Vote) error {
	if err := vote.Validate(); err != nil {
		return fmt.Errorf("%s: %w", s.transaction, err)
	}
	return s.explain(s.s.changeBy(ctx, s.what, s.s.repeating(s.answers), func(ctx context.Context) error {
		_, err := s.s.transactions.VoteTransaction(ctx, &pb.VoteTransactionRequest{
			Session: s.s.handle, Membership: s.membership, Vote: string(vote),
		})
		return err
	}))
}

func (s *site) Wait(ctx context.Context) (recipes.Decision, error) {
	var d recipes.Decision
	err := s.s.changeAbandonably(ctx, s.what, s.s.repeating(s.answers), func(ctx context.Context, id string) error {
		r, err := s.s.transactions.AwaitDecision(ctx, &pb.AwaitDecisionRequest{
			Session: s.s.handle, Membership: s.membership, RequestId: id,
		})
		d = wire.Decision(r.GetDecision())
		return err
	})
	return d, s.explain(err)
}

// Done may find that the transaction is over: the plugin that has ended had done it.
func (s *site) Done(ctx context.Context) error {
	err := s.s.changeBy(ctx, s.what, s.s.repeating(s.answers), func(ctx context.Context) error {
		_, err := s.s.transactions.FinishSite(ctx, &pb.FinishSiteRequest{Session: s.s.handle, Membership: s.membership})
		return err
	})
	if err != nil && errors.Is(s.s.lossOf(&s.part), recipes.ErrNoTransaction) {
		err = nil
	}
	if err == nil {
		s.s.dropPart(s.membership, &s.part, errDone)
	}
	return s.explain(err)
}

// errDone is why no plugin knows a site.
var errDone = fmt.Errorf("%w: the site is done", recipes.ErrNoTransaction)

// explain says why a plugin does not know the site.
func (s *site) explain(err error) error {
	if lost := s.s.lossOf(&s.part); lost != nil && errors.Is(err, recipes.ErrNoTransaction) {
		return fmt.Errorf("%s: %w", s, keepOutcome(lost, err))
	}
	return err
}

// answers is that of the package. A plugin that has not resumed the site does not know it,
// which answers no call that was made before, unless none can have had an effect.
func (s *site) answers(e error) bool {
	lost := s.s.lossOf(&s.part)
	if lost != nil && errors.Is(e, recipes.ErrNoTransaction) {
		return errors.Is(lost, recipes.ErrNoTransaction) || errors.Is(lost, recipes.ErrNotHeld)
	}
	return answers(e)
}
