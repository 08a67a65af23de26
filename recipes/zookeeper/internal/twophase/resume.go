package twophase

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// ResumeCoordinator resumes the coordinator's role in a transaction that another process
// of this session has begun: see session.Resume. id is what BeginAs has returned.
// Somebody calls Coordinate afterwards, as after Begin. Until session.DropRest it may be
// called again.
//
// If the role is not the session's, the error matches recipes.ErrNotHeld: others count
// the votes, or will. If another transaction has begun, or none, it matches
// recipes.ErrNoTransaction.
func (t *twoPhase) ResumeCoordinator(ctx context.Context, id string) error {
	p, err := t.protocol(ctx)
	if err == nil {
		err = t.is(p, id)
	}
	if err == nil && p.Variant != recipes.AllWatch {
		err = t.resumeChild(ctx, coordinatorName)
	}
	if err != nil {
		return t.failed(fmt.Errorf("resume: %w", err))
	}
	return nil
}

// ResumeSite is Join for a site that has joined in another process of this session. id
// is the site's ID there. It creates nothing. With OwnNodes the site's znode has to be
// there, and the session's, unless there is a decision: otherwise the error matches
// recipes.ErrNotHeld. If the transaction is over, and deleted, the error matches
// recipes.ErrNoTransaction.
func (t *twoPhase) ResumeSite(ctx context.Context, name, id string) (recipes.Site, error) {
	payload, p, err := t.read(ctx)
	if err == nil {
		err = t.is(p, id)
	}
	if err == nil && !slices.Contains(p.Sites, name) {
		err = fmt.Errorf("%w: %q; its sites are %q", recipes.ErrUnknownSite, name, p.Sites)
	}
	if err == nil && p.Variant == recipes.OwnNodes {
		err = t.resumeChild(ctx, sitePrefix+name)
		if errors.Is(err, recipes.ErrNotHeld) {
			if _, decided, lookErr := t.decision(ctx, p); lookErr != nil || decided {
				err = lookErr
			}
		}
	}
	if err != nil {
		return nil, t.failed(fmt.Errorf("resume: %w", err))
	}
	return &site{twoPhase: t, name: name, payload: payload, protocol: p}, nil
}

// ID is the transaction's. Each beginning has another one.
func (s *site) ID() string { return s.protocol.ID }

func (t *twoPhase) is(p protocol, id string) error {
	if p.ID != id {
		return fmt.Errorf("%w: another one has begun at the path", recipes.ErrNoTransaction)
	}
	return nil
}

// resumeChild has session.DropRest leave a child that the session had before it was resumed.
func (t *twoPhase) resumeChild(ctx context.Context, child string) error {
	path := t.child(child)
	node, err := t.session.Get(ctx, path)
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		return fmt.Errorf("%w: %s", recipes.ErrRemoved, path)
	case err != nil:
		return err
	case node.Stat.EphemeralOwner != t.session.ID():
		return fmt.Errorf("%w: %s belongs to another session", recipes.ErrNotHeld, path)
	case !t.session.MarkResumed(path) && !t.session.WasResumed(path):
		return fmt.Errorf("%w: %s cannot be resumed now", recipes.ErrInvalid, path)
	}
	return nil
}
