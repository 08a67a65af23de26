package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type transaction struct {
	recipe
	variant recipes.Variant
}

type site struct {
	*transaction
	part    part // its key is the site's membership
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
	id := t.s.requestID()
	options, done := t.beginning(sentOnce.abandonable(id))
	defer done()
	name, err := write(ctx, t.recipe, options, t.s.transactions.BeginTransaction, &pb.BeginTransactionRequest{
		Session: t.s.handle, Path: t.path, Variant: string(t.variant), Payload: payload, Sites: sites, RequestId: id,
	}, (*pb.BeginTransactionResponse).GetTransaction)
	if err == nil {
		err = t.undone(ctx, id)
	}
	if err != nil || name == "" {
		return err
	}
	t.s.addPart(&part{s: t.s, key: t.coordinator(), request: id, name: name, ask: func(ctx context.Context) error {
		_, err := t.s.transactions.BeginTransaction(ctx, &pb.BeginTransactionRequest{
			Session: t.s.handle, Path: t.path, RequestId: id, Resumed: name,
		})
		return err
	}})
	return nil
}

// beginning is for a call that begins a part: DropRest, which could delete it, waits for done.
func (t *transaction) beginning(options callOptions) (_ callOptions, done func()) {
	w := &waiter{turns: make(chan turn, 1), always: true}
	options.waiter = w
	t.s.expect(options.abandonID, w)
	return options, func() { t.s.unexpect(options.abandonID, w) }
}

// undone returns an error if ctx has ended, although the call with that id has succeeded. The
// plugin is notified of that, and undoes the call also after its answer.
func (t *transaction) undone(ctx context.Context, id string) error {
	if ctx.Err() == nil {
		return nil
	}
	t.s.abandon(id) // again, unless ctx has ended after the answer
	return fmt.Errorf("%s: %w: %w", t, recipes.ErrUnknownOutcome, ctx.Err())
}

// coordinator returns the key of the coordinator's part. A site's key does not begin with a
// slash.
func (t *transaction) coordinator() string { return t.path }

// Coordinate is repeated only for the transaction that this session has begun, by its name.
// Without a name, a repeated call could count the votes of a later transaction at the path.
func (t *transaction) Coordinate(ctx context.Context) (recipes.Decision, error) {
	id, options, place, calls := t.s.requestID(), sentOnce, t.s.part(t.coordinator()), 0
	if place != nil {
		options = repeated(answers)
	}
	coordinate := func(ctx context.Context, ask *pb.CoordinateTransactionRequest, options ...grpc.CallOption) (*pb.CoordinateTransactionResponse, error) {
		if calls++; calls > 1 && place != nil {
			ask = proto.CloneOf(ask)
			ask.Transaction = place.name
		}
		return t.s.transactions.CoordinateTransaction(ctx, ask, options...)
	}
	d, err := write(ctx, t.recipe, options.abandonable(id), coordinate, &pb.CoordinateTransactionRequest{Session: t.s.handle, Path: t.path, RequestId: id},
		func(a *pb.CoordinateTransactionResponse) recipes.Decision { return wire.Decision(a.GetDecision()) })
	if place != nil {
		place.end(err)
		if err != nil { // the plugin may have ended before it ended the role
			t.s.abandon(place.request)
		}
	}
	return d, err
}

// Abort is not repeated: the transaction may be over by then, and another one may have begun.
func (t *transaction) Abort(ctx context.Context, reason string) (recipes.Decision, error) {
	return write(ctx, t.recipe, sentOnce, t.s.transactions.AbortTransaction,
		&pb.AbortTransactionRequest{Session: t.s.handle, Path: t.path, Reason: wire.Text(reason)},
		func(a *pb.AbortTransactionResponse) recipes.Decision { return wire.Decision(a.GetDecision()) })
}

func (t *transaction) Join(ctx context.Context, name string) (recipes.Site, error) {
	id := t.s.requestID()
	options, done := t.beginning(repeated(answers).abandonable(id))
	defer done()
	joined, err := write(ctx, t.recipe, options, t.s.transactions.JoinTransaction,
		&pb.JoinTransactionRequest{Session: t.s.handle, Path: t.path, Site: name, RequestId: id},
		func(a *pb.JoinTransactionResponse) *site {
			return &site{transaction: t, name: name, payload: a.GetPayload(), part: part{s: t.s, key: a.GetMembership()}}
		})
	if err == nil {
		err = t.undone(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	joined.part.ask = func(ctx context.Context) error {
		_, err := t.s.transactions.JoinTransaction(ctx, &pb.JoinTransactionRequest{
			Session: t.s.handle, Path: t.path, Site: name, Resumed: joined.part.key,
		})
		return err
	}
	t.s.addPart(&joined.part)
	return joined, nil
}

func (t *transaction) Status(ctx context.Context) (recipes.TransactionStatus, error) {
	return read(ctx, t.recipe, t.s.transactions.GetTransaction,
		&pb.GetTransactionRequest{Session: t.s.handle, Path: t.path}, wire.TransactionStatus)
}

func (t *transaction) Forget(ctx context.Context) error {
	return change(ctx, t.recipe, sentOnce, t.s.transactions.ForgetTransaction,
		&pb.ForgetTransactionRequest{Session: t.s.handle, Path: t.path})
}

func (s *site) Name() string    { return s.name }
func (s *site) Payload() []byte { return s.payload }

func (s *site) Vote(ctx context.Context, vote recipes.Vote) error {
	if err := vote.Validate(); err != nil {
		return fmt.Errorf("%s: %w", s.transaction, err)
	}
	_, err := write(ctx, s.recipe, repeated(s.answers), s.s.transactions.VoteTransaction,
		&pb.VoteTransactionRequest{Session: s.s.handle, Membership: s.part.key, Vote: string(vote)}, nothing)
	return s.explain(err)
}

func (s *site) Wait(ctx context.Context) (recipes.Decision, error) {
	id := s.s.requestID()
	d, err := write(ctx, s.recipe, repeated(s.answers).abandonable(id), s.s.transactions.AwaitDecision,
		&pb.AwaitDecisionRequest{Session: s.s.handle, Membership: s.part.key, RequestId: id},
		func(a *pb.AwaitDecisionResponse) recipes.Decision { return wire.Decision(a.GetDecision()) })
	return d, s.explain(err)
}

// Done is repeated. If the transaction is over by then, the plugin that ended has finished the
// site.
func (s *site) Done(ctx context.Context) error {
	_, err := write(ctx, s.recipe, repeated(s.answers), s.s.transactions.FinishSite,
		&pb.FinishSiteRequest{Session: s.s.handle, Membership: s.part.key}, nothing)
	if err != nil && errors.Is(s.part.loss(), recipes.ErrNoTransaction) {
		err = nil
	}
	if err == nil {
		s.part.end(errDone)
	}
	return s.explain(err)
}

// errDone is the reason why no plugin knows a site that has finished.
var errDone = fmt.Errorf("%w: the site is done", recipes.ErrNoTransaction)

// explain adds the reason why the plugin does not know the site.
func (s *site) explain(err error) error {
	if lost := s.part.loss(); lost != nil && errors.Is(err, recipes.ErrNoTransaction) {
		return fmt.Errorf("%s: %w", s, keepOutcome(lost, err))
	}
	return err
}

// answers reports whether e also answers an earlier call of the site: see the function
// answers. A plugin that has not resumed the site returns ErrNoTransaction. That error does
// not answer an earlier call, unless no earlier call can have had an effect.
func (s *site) answers(e error) bool {
	lost := s.part.loss()
	if lost != nil && errors.Is(e, recipes.ErrNoTransaction) {
		return errors.Is(lost, recipes.ErrNoTransaction) || errors.Is(lost, recipes.ErrNotHeld)
	}
	return answers(e)
}

// A part is the session's role in a transaction: the coordinator, or a site.
type part struct {
	s       *session
	key     string
	request string // the id of the call that began it; abandoning the id ends a coordinator's role
	name    string // the transaction's name; empty for a site
	ask     func(context.Context) error
	location

	lost error // why no plugin has it; under the session's mu
}

// addPart records a part until its end, so that the next plugin resumes it. Resuming it twice
// does no harm. If the session cannot outlive its plugin, nothing is recorded.
func (s *session) addPart(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumable && s.err == nil {
		p.at = s.owner
		s.owned[p.key] = p
	}
}

func (s *session) part(key string) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _ := s.owned[key].(*part)
	return p
}

// end removes a part, so that no further plugin resumes it; lost is the reason. If another
// part has replaced it, that one stays.
func (p *part) end(lost error) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.lost = lost
	if p.s.owned[p.key] == p {
		delete(p.s.owned, p.key)
	}
}

func (p *part) loss() error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.lost
}

func (p *part) resume(ctx context.Context) error { return p.ask(ctx) }

func (p *part) drop(reason error) {
	p.end(fmt.Errorf("the plugin has ended, and the next one has not resumed this: %w", reason))
}
