package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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

func (s service) BeginTransaction(ctx context.Context, r *pb.BeginTransactionRequest) (*pb.BeginTransactionResponse, error) {
	return withAbandonable(ctx, s.Server, r, transaction(r.GetVariant()), func(ctx context.Context, ss *session, t recipes.Transaction) (*pb.BeginTransactionResponse, error) {
		id, err := ss.beginTransaction(ctx, t, r)
		if err != nil {
			return nil, err
		}
		err = ss.acquisitions.undoable(undoContext(ctx, r.GetResumed()), r.GetRequestId(), func() { undoBegin(t) })
		return &pb.BeginTransactionResponse{Transaction: id}, err
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

func (s service) CoordinateTransaction(ctx context.Context, r *pb.CoordinateTransactionRequest) (*pb.CoordinateTransactionResponse, error) {
	d, err := withAbandonable(ctx, s.Server, r, transaction(""), func(ctx context.Context, _ *session, t recipes.Transaction) (recipes.Decision, error) {
		return coordinate(ctx, t, r)
	})
	return &pb.CoordinateTransactionResponse{Decision: wire.ToDecision(&d)}, err
}

func (s service) AbortTransaction(ctx context.Context, r *pb.AbortTransactionRequest) (*pb.AbortTransactionResponse, error) {
	d, err := with(s.Server, r, transaction(""), func(t recipes.Transaction) (recipes.Decision, error) { return t.Abort(ctx, r.GetReason()) })
	return &pb.AbortTransactionResponse{Decision: wire.ToDecision(&d)}, err
}

func (s service) JoinTransaction(ctx context.Context, r *pb.JoinTransactionRequest) (*pb.JoinTransactionResponse, error) {
	return withAbandonable(ctx, s.Server, r, transaction(""), func(ctx context.Context, ss *session, t recipes.Transaction) (*pb.JoinTransactionResponse, error) {
		site, membership, err := ss.joinTransaction(ctx, t, r)
		if err != nil {
			return nil, err
		}
		err = ss.acquisitions.undoable(undoContext(ctx, r.GetResumed()), r.GetRequestId(), func() { ss.memberships.forget(membership) })
		return &pb.JoinTransactionResponse{Payload: site.Payload(), Membership: membership}, err
	})
}

func (s service) VoteTransaction(ctx context.Context, r *pb.VoteTransactionRequest) (*pb.VoteTransactionResponse, error) {
	return &pb.VoteTransactionResponse{}, do(s.Server, r, site(r), func(site recipes.Site) error { return site.Vote(ctx, recipes.Vote(r.GetVote())) })
}

func (s service) AwaitDecision(ctx context.Context, r *pb.AwaitDecisionRequest) (*pb.AwaitDecisionResponse, error) {
	d, err := withAbandonable(ctx, s.Server, r, site(r), func(ctx context.Context, _ *session, site recipes.Site) (recipes.Decision, error) {
		return site.Wait(ctx)
	})
	return &pb.AwaitDecisionResponse{Decision: wire.ToDecision(&d)}, err
}

// FinishSite may be repeated: a membership that is not found has finished. In a resumed session
// it may also not have been resumed; memberships remembers which have finished.
func (s service) FinishSite(ctx context.Context, r *pb.FinishSiteRequest) (*pb.FinishSiteResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	site, ok := ss.memberships.get(r.GetMembership())
	switch {
	case ok:
		err = site.Done(ctx)
	case ss.resumption.resumed && !ss.memberships.hasFinished(r.GetMembership()):
		err = errNoMembership(r.GetMembership())
	}
	if err != nil {
		return nil, err
	}
	ss.memberships.finish(r.GetMembership())
	return &pb.FinishSiteResponse{}, nil
}

func (s service) ForgetTransaction(ctx context.Context, r *pb.ForgetTransactionRequest) (*pb.ForgetTransactionResponse, error) {
	return &pb.ForgetTransactionResponse{}, do(s.Server, r, transaction(""), func(t recipes.Transaction) error { return t.Forget(ctx) })
}

func (s service) GetTransaction(ctx context.Context, r *pb.GetTransactionRequest) (*pb.GetTransactionResponse, error) {
	status, err := with(s.Server, r, transaction(""), func(t recipes.Transaction) (recipes.TransactionStatus, error) { return t.Status(ctx) })
	return wire.ToTransactionStatus(status), err
}

// memberships are the sites that a session has joined and not finished, by the name of the
// membership, which ends with the transaction's name.
type memberships struct {
	mu       sync.Mutex
	all      map[string]recipes.Site
	finished []string // the oldest first
}

func (ms *memberships) add(membership string, site recipes.Site) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.all == nil {
		ms.all = make(map[string]recipes.Site)
	}
	ms.all[membership] = site
}

// room returns an error if the session has as many sites as the limit allows. The limit
// protects against hosts that do not finish their sites.
func (ms *memberships) room(limit int) error {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if n := len(ms.all); n >= limit {
		return fmt.Errorf("%w: the session has %d sites in transactions", recipes.ErrLimit, n)
	}
	return nil
}

func (ms *memberships) get(membership string) (recipes.Site, bool) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	site, ok := ms.all[membership]
	return site, ok
}

func (ms *memberships) forget(membership string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	delete(ms.all, membership)
}

// finish ends a membership. The latest ones are remembered, for a repeated call.
func (ms *memberships) finish(membership string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.all[membership] == nil {
		return
	}
	delete(ms.all, membership)
	ms.finished = append(ms.finished, membership)
	if len(ms.finished) > remembered {
		ms.finished = ms.finished[1:]
	}
}

func (ms *memberships) hasFinished(membership string) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return slices.Contains(ms.finished, membership)
}

func errNoMembership(membership string) error {
	return fmt.Errorf("%w: membership %q has finished, or never existed", recipes.ErrNoTransaction, membership)
}

// A resumable transaction can be resumed in another plugin, by its name.
type resumable interface {
	BeginAs(ctx context.Context, payload []byte, sites ...string) (name string, err error)
	CoordinateAs(ctx context.Context, name string) (recipes.Decision, error)
	ResumeCoordinator(ctx context.Context, name string) error
	ResumeSite(ctx context.Context, site, name string) (recipes.Site, error)
}

// beginTransaction begins a transaction, or resumes the coordinator. It returns the transaction's name.
func (ss *session) beginTransaction(ctx context.Context, t recipes.Transaction, r *pb.BeginTransactionRequest) (string, error) {
	m, able := t.(resumable)
	switch resumed := r.GetResumed(); {
	case resumed == "" && !able:
		return "", t.Begin(ctx, r.GetPayload(), r.GetSites()...)
	case resumed == "":
		return m.BeginAs(ctx, r.GetPayload(), r.GetSites()...)
	case !able:
		return "", errNotResumed
	case ss.resumption.over():
		return "", errTooLate
	default:
		return resumed, m.ResumeCoordinator(ctx, resumed)
	}
}

// coordinate counts the votes. If the request names a transaction, only that one counts.
func coordinate(ctx context.Context, t recipes.Transaction, r *pb.CoordinateTransactionRequest) (recipes.Decision, error) {
	m, able := t.(resumable)
	switch name := r.GetTransaction(); {
	case name == "":
		return t.Coordinate(ctx)
	case !able:
		return recipes.Decision{}, errNotResumed
	default:
		return m.CoordinateAs(ctx, name)
	}
}

func (ss *session) joinTransaction(ctx context.Context, t recipes.Transaction, r *pb.JoinTransactionRequest) (site recipes.Site, membership string, err error) {
	m, able := t.(resumable)
	switch resumed := r.GetResumed(); {
	case resumed == "":
		if err = ss.memberships.room(ss.acquisitions.limit); err != nil {
			return nil, "", err
		}
		site, err = t.Join(ctx, r.GetSite())
		membership = uuid.NewString()
		if s, ok := site.(interface{ ID() string }); ok {
			membership += membershipSeparator + s.ID()
		}
	case !able:
		err = errNotResumed
	case ss.resumption.over():
		err = errTooLate
	default:
		_, name, _ := strings.Cut(resumed, membershipSeparator)
		site, err = m.ResumeSite(ctx, r.GetSite(), name)
		membership = resumed
	}
	if err == nil {
		ss.memberships.add(membership, site)
	}
	return site, membership, err
}

const membershipSeparator = "/"
