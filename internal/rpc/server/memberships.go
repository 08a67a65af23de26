package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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

// begin begins a transaction, or resumes the coordinator. It returns the transaction's name.
func (ss *session) begin(ctx context.Context, t recipes.Transaction, r *pb.BeginTransactionRequest) (string, error) {
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

// join joins a site, or resumes it.
func (ss *session) join(ctx context.Context, t recipes.Transaction, r *pb.JoinTransactionRequest) (site recipes.Site, membership string, err error) {
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
