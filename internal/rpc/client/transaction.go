package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var transactionService = pb.NewTransactionServiceClient(link.Router{})

type transaction struct {
	recipe
	variant recipes.Variant
}

type site struct {
	*transaction
	part    link.Part // the part's key is the site's membership
	name    string
	payload []byte
}

func (s *session) Transaction(path string, cfg recipes.TransactionConfig) (recipes.Transaction, error) {
	variant, invalid := cfg.Variant.Normalize()
	r, err := s.at("transaction", path, "", notRoot(path, "the root cannot be a transaction"), invalid)
	if err != nil {
		return nil, err
	}
	return &transaction{r, variant}, nil
}

// Begin is not repeated: a plugin that has ended may have begun the transaction. If so, the
// transaction has no coordinator, and votes are not counted until a site joins.
func (t *transaction) Begin(ctx context.Context, payload []byte, sites ...string) error {
	if err := recipes.ValidateSites(sites); err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	id := t.s.RequestID()
	options, done := t.s.DelayDropRest(link.AtMostOnce().Abandonable(id))
	defer done()
	name, err := write(ctx, t.recipe, options, transactionService.BeginTransaction, &pb.BeginTransactionRequest{
		Session: t.s.Handle(), Path: t.path, Variant: string(t.variant), Payload: payload, Sites: sites, RequestId: id,
	}, (*pb.BeginTransactionResponse).GetTransaction)
	if err == nil {
		err = t.undone(ctx, id)
	}
	if err != nil || name == "" {
		return err
	}
	t.s.Keep(&link.Part{Key: t.coordinator(), Request: id, Name: name, Resume: func(ctx context.Context) error {
		_, err := transactionService.BeginTransaction(ctx, &pb.BeginTransactionRequest{
			Session: t.s.Handle(), Path: t.path, RequestId: id, Resumed: name,
		})
		return err
	}})
	return nil
}

// undone returns an error if ctx has ended, although the call with that id has succeeded. The
// plugin is notified of that, and undoes the call even after its answer.
func (t *transaction) undone(ctx context.Context, id string) error {
	if ctx.Err() == nil {
		return nil
	}
	t.s.Abandon(id) // a repetition, unless ctx has ended after the answer
	return fmt.Errorf("%s: %w: %w", t, recipes.ErrUnknownOutcome, ctx.Err())
}

// coordinator returns the key of the coordinator's part. A site's key does not begin with a
// slash.
func (t *transaction) coordinator() string { return t.path }

// Coordinate is repeated only for the transaction that this session has begun, by its name.
// Without a name, a repeated call could count the votes of a later transaction at the path.
func (t *transaction) Coordinate(ctx context.Context) (recipes.Decision, error) {
	id, options, place, calls := t.s.RequestID(), link.AtMostOnce(), t.s.Part(t.coordinator()), 0
	if place != nil {
		options = link.Repeated(link.Answers)
	}
	coordinate := func(ctx context.Context, request *pb.CoordinateTransactionRequest, options ...grpc.CallOption) (*pb.CoordinateTransactionResponse, error) {
		if calls++; calls > 1 && place != nil {
			request = proto.CloneOf(request)
			request.Transaction = place.Name
		}
		return transactionService.CoordinateTransaction(ctx, request, options...)
	}
	d, err := write(ctx, t.recipe, options.Abandonable(id), coordinate, &pb.CoordinateTransactionRequest{Session: t.s.Handle(), Path: t.path, RequestId: id},
		func(a *pb.CoordinateTransactionResponse) recipes.Decision { return wire.Decision(a.GetDecision()) })
	if place != nil {
		place.End(err)
		if err != nil { // the plugin may have ended before it ended the role
			t.s.Abandon(place.Request)
		}
	}
	return d, err
}

// Abort is not repeated: the transaction may be over by then, and another one may have begun.
func (t *transaction) Abort(ctx context.Context, reason string) (recipes.Decision, error) {
	return write(ctx, t.recipe, link.AtMostOnce(), transactionService.AbortTransaction,
		&pb.AbortTransactionRequest{Session: t.s.Handle(), Path: t.path, Reason: wire.Text(reason)},
		func(a *pb.AbortTransactionResponse) recipes.Decision { return wire.Decision(a.GetDecision()) })
}

func (t *transaction) Join(ctx context.Context, name string) (recipes.Site, error) {
	id := t.s.RequestID()
	options, done := t.s.DelayDropRest(link.Repeated(link.Answers).Abandonable(id))
	defer done()
	joined, err := write(ctx, t.recipe, options, transactionService.JoinTransaction,
		&pb.JoinTransactionRequest{Session: t.s.Handle(), Path: t.path, Site: name, RequestId: id},
		func(a *pb.JoinTransactionResponse) *site {
			return &site{transaction: t, name: name, payload: a.GetPayload(), part: link.Part{Key: a.GetMembership()}}
		})
	if err == nil {
		err = t.undone(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	joined.part.Resume = func(ctx context.Context) error {
		_, err := transactionService.JoinTransaction(ctx, &pb.JoinTransactionRequest{
			Session: t.s.Handle(), Path: t.path, Site: name, Resumed: joined.part.Key,
		})
		return err
	}
	t.s.Keep(&joined.part)
	return joined, nil
}

func (t *transaction) Status(ctx context.Context) (recipes.TransactionStatus, error) {
	return read(ctx, t.recipe, transactionService.GetTransaction,
		&pb.GetTransactionRequest{Session: t.s.Handle(), Path: t.path}, wire.TransactionStatus)
}

func (t *transaction) Forget(ctx context.Context) error {
	return change(ctx, t.recipe, link.AtMostOnce(), transactionService.ForgetTransaction,
		&pb.ForgetTransactionRequest{Session: t.s.Handle(), Path: t.path})
}

func (s *site) Name() string    { return s.name }
func (s *site) Payload() []byte { return s.payload }

func (s *site) Vote(ctx context.Context, vote recipes.Vote) error {
	if err := vote.Validate(); err != nil {
		return fmt.Errorf("%s: %w", s.transaction, err)
	}
	_, err := write(ctx, s.recipe, link.Repeated(s.answers), transactionService.VoteTransaction,
		&pb.VoteTransactionRequest{Session: s.s.Handle(), Membership: s.part.Key, Vote: string(vote)}, nothing)
	return s.explain(err)
}

func (s *site) Wait(ctx context.Context) (recipes.Decision, error) {
	id := s.s.RequestID()
	d, err := write(ctx, s.recipe, link.Repeated(s.answers).Abandonable(id), transactionService.AwaitDecision,
		&pb.AwaitDecisionRequest{Session: s.s.Handle(), Membership: s.part.Key, RequestId: id},
		func(a *pb.AwaitDecisionResponse) recipes.Decision { return wire.Decision(a.GetDecision()) })
	return d, s.explain(err)
}

// Done is repeated. If the transaction has ended by then, the plugin that ended has finished
// the site.
func (s *site) Done(ctx context.Context) error {
	_, err := write(ctx, s.recipe, link.Repeated(s.answers), transactionService.FinishSite,
		&pb.FinishSiteRequest{Session: s.s.Handle(), Membership: s.part.Key}, nothing)
	if err != nil && errors.Is(s.part.Lost(), recipes.ErrNoTransaction) {
		err = nil
	}
	if err == nil {
		s.part.End(errDone)
	}
	return s.explain(err)
}

// errDone is the reason why no plugin knows a site that has finished.
var errDone = fmt.Errorf("%w: the site is done", recipes.ErrNoTransaction)

// explain adds the reason why the plugin does not know the site.
func (s *site) explain(err error) error {
	if lost := s.part.Lost(); lost != nil && errors.Is(err, recipes.ErrNoTransaction) {
		return fmt.Errorf("%s: %w", s, link.KeepOutcome(lost, err))
	}
	return err
}

// answers reports whether e also answers an earlier call of the site: see the function
// answers. A plugin that has not resumed the site returns ErrNoTransaction. That error answers an
// earlier call only if no earlier call can have had an effect.
func (s *site) answers(e error) bool {
	lost := s.part.Lost()
	if lost != nil && errors.Is(e, recipes.ErrNoTransaction) {
		return errors.Is(lost, recipes.ErrNoTransaction) || errors.Is(lost, recipes.ErrNotHeld)
	}
	return link.Answers(e)
}
