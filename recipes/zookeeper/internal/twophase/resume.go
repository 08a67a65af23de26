package twophase

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// ResumeCoordinator resumes the coordinator's role in a transaction that another process
// of this session has begun: see session.Resume. id is the result of BeginAs. The caller
// then calls Coordinate, as after Begin. ResumeCoordinator may be called again until
// session.DropRest.
//
// If the role is not the session's, the error matches recipes.ErrNotHeld: another session
// counts the votes, or will. If there is no transaction, or another one, it matches
// recipes.ErrNoTransaction.
func (t *twoPhase) ResumeCoordinator(ctx context.Context, id string) error {
	p, err := t.protocol(ctx)
	if err == nil {
		err = t.checkID(p, id)
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
// is the result of the site's ID there. ResumeSite creates nothing. With OwnNodes, the
// site's znode must exist and be the session's, unless there is a decision: otherwise the
// error matches recipes.ErrNotHeld. If the transaction was completed and deleted, the error
// matches recipes.ErrNoTransaction.
func (t *twoPhase) ResumeSite(ctx context.Context, name, id string) (recipes.Site, error) {
	payload, p, err := t.read(ctx)
	if err == nil {
		err = t.checkID(p, id)
	}
	if err == nil && !slices.Contains(p.Sites, name) {
		err = fmt.Errorf("%w: %q; its sites are %q", recipes.ErrUnknownSite, name, p.Sites)
	}
	if err == nil && p.Variant == recipes.OwnNodes {
		err = t.resumeChild(ctx, sitePrefix+name)
		if errors.Is(err, recipes.ErrNotHeld) {
			if _, decided, readErr := t.decision(ctx, p); readErr != nil || decided {
				err = readErr
			}
		}
	}
	if err != nil {
		return nil, t.failed(fmt.Errorf("resume: %w", err))
	}
	return &site{twoPhase: t, name: name, payload: payload, protocol: p}, nil
}

// ID is the ID of the transaction. Each beginning has another one.
func (s *site) ID() string { return s.protocol.ID }

// checkID checks that the transaction is the one of that ID.
func (t *twoPhase) checkID(p protocol, id string) error {
	if p.ID != id {
		return fmt.Errorf("%w: another transaction has begun at the path", recipes.ErrNoTransaction)
	}
	return nil
}

// resumeChild keeps session.DropRest from deleting a child that the session has created
// before it was resumed.
func (t *twoPhase) resumeChild(ctx context.Context, child string) error {
	path := t.Child(child)
	node, err := t.Session.Get(ctx, path)
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		return fmt.Errorf("%w: %s", recipes.ErrRemoved, path)
	case err != nil:
		return err
	case node.Stat.EphemeralOwner != t.Session.ID():
		return fmt.Errorf("%w: %s belongs to another session", recipes.ErrNotHeld, path)
	case !t.Session.MarkResumed(path) && !t.Session.WasResumed(path):
		return fmt.Errorf("%w: %s cannot be resumed now", recipes.ErrInvalid, path)
	}
	return nil
}
