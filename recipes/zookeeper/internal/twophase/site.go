package twophase

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

type site struct {
	*twoPhase
	name     string
	payload  []byte
	protocol protocol
}

func (s *site) Name() string    { return s.name }
func (s *site) Payload() []byte { return s.payload }

func (s *site) znode() string { return s.Child(sitePrefix + s.name) }

func (t *twoPhase) Join(ctx context.Context, name string) (recipes.Site, error) {
	payload, p, err := t.read(ctx)
	if err != nil {
		return nil, t.failed(err)
	}
	if !slices.Contains(p.Sites, name) {
		return nil, t.failed(fmt.Errorf("%w: %q; its sites are %q", recipes.ErrUnknownSite, name, p.Sites))
	}
	s := &site{twoPhase: t, name: name, payload: payload, protocol: p}
	if p.Variant == recipes.OwnNodes {
		if err := s.create(ctx); err != nil {
			return nil, t.failed(err)
		}
	}
	return s, nil
}

// create creates the site's znode, together with a record that remains. If only the record
// exists, the site has died. If both are missing, the site has not joined yet. So any
// session can distinguish the two at any time.
func (s *site) create(ctx context.Context) error {
	join := s.guard(s.protocol)
	join.Create(s.Child(joinedPrefix+s.name), nil, false)
	join.Create(s.znode(), nil, true)
	_, err := s.commit(ctx, join)
	if errors.Is(err, recipes.ErrNodeExists) {
		return s.joinAgain(ctx) // an attempt whose reply was lost may have created them
	}
	return err
}

// joinAgain joins a site that has joined before. It succeeds if the znode is this session's,
// or if there is a decision.
func (s *site) joinAgain(ctx context.Context) error {
	stat, err := s.Session.Stat(ctx, s.znode())
	if err == nil && stat.EphemeralOwner == s.Session.ID() {
		s.Session.MarkResumed(s.znode()) // the znode may have been created before session.Resume
		return nil
	}
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return err
	}
	if _, decided, err := s.decision(ctx, s.protocol); err != nil || decided {
		return err
	}
	if err == nil {
		return fmt.Errorf("%w: site %s has joined in session %#x", recipes.ErrNotHeld, s.name, stat.EphemeralOwner)
	}
	return fmt.Errorf("%w: site %s has joined before and died", recipes.ErrNotHeld, s.name)
}

// Vote writes the vote at the version that the znode has before its first write. If the
// znode was written before, Vote compares: an equal vote counts as its own earlier attempt.
func (s *site) Vote(ctx context.Context, vote recipes.Vote) error {
	if err := vote.Validate(); err != nil {
		return s.failed(err)
	}
	write := s.guard(s.protocol)
	write.Set(s.znode(), []byte(vote), 0)
	for {
		at, err := s.commit(ctx, write)
		switch {
		case err == nil:
			return nil
		case at == 0 && errors.Is(err, recipes.ErrBadVersion):
			err = s.compare(ctx, vote)
			if errors.Is(err, recipes.ErrNoNode) {
				continue // the site's znode was deleted in between; the next attempt shows whether the transaction was deleted too
			}
		case at == 0 && errors.Is(err, recipes.ErrNoNode) && s.protocol.Variant == recipes.OwnNodes:
			err = fmt.Errorf("%w: site %s is dead", recipes.ErrRemoved, s.name)
		case at == 0 && errors.Is(err, recipes.ErrNoNode): // the transaction exists: the guard passed
			err = fmt.Errorf("%w: the vote znode of site %s", recipes.ErrRemoved, s.name)
		}
		return s.failed(err)
	}
}

// compare returns nil if the vote that was written before is this one.
func (s *site) compare(ctx context.Context, vote recipes.Vote) error {
	node, err := s.Session.Get(ctx, s.znode())
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		return err
	case err != nil:
		return znode.UnknownOutcome(err) // the stored vote may be this one
	case recipes.Vote(node.Data) != vote:
		return fmt.Errorf("%w: site %s for %q", recipes.ErrVoted, s.name, node.Data)
	}
	return nil
}

func (s *site) Done(ctx context.Context) error {
	err := s.settled(ctx, s.undecided)
	if errors.Is(err, recipes.ErrNoTransaction) || errors.Is(err, recipes.ErrNoNode) {
		return nil // all are done
	}
	if err != nil {
		return s.failed(err)
	}
	done := s.guard(s.protocol)
	done.Create(s.Child(donePrefix+s.name), nil, false)
	_, err = s.commit(ctx, done)
	switch {
	case errors.Is(err, recipes.ErrNoTransaction):
		return nil // all are done
	case err != nil && !errors.Is(err, recipes.ErrNodeExists):
		return s.failed(err)
	}
	err = s.forget(ctx) // deletes the transaction if all other sites are done
	if errors.Is(err, recipes.ErrUndecided) {
		return nil
	}
	return s.failed(err)
}

// settled calls read. If the answer is ErrUndecided, the server may lag, so settled calls
// read again after a sync.
func (t *twoPhase) settled(ctx context.Context, read func(context.Context) error) error {
	err := read(ctx)
	if errors.Is(err, recipes.ErrUndecided) {
		if err = t.Session.Sync(ctx, t.Path()); err == nil {
			err = read(ctx)
		}
	}
	return err
}

// undecided returns ErrUndecided if the transaction exists without a decision.
func (s *site) undecided(ctx context.Context) error {
	_, decided, err := s.decision(ctx, s.protocol)
	if err != nil || decided {
		return err
	}
	if _, err := s.Session.Stat(ctx, s.Child(idPrefix+s.protocol.ID)); err != nil {
		return err
	}
	return recipes.ErrUndecided
}

func (t *twoPhase) Forget(ctx context.Context) error {
	return t.failed(t.settled(ctx, t.forget))
}

// forget deletes the transaction if all sites are done, and otherwise returns ErrUndecided.
// It succeeds if another session has deleted the transaction.
func (t *twoPhase) forget(ctx context.Context) error {
	p, err := t.protocol(ctx)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for {
		names, err := t.Session.Children(ctx, t.Path())
		if errors.Is(err, recipes.ErrNoNode) || err == nil && !slices.Contains(names, idPrefix+p.ID) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, missing := p.split(names, donePrefix); len(missing) > 0 {
			return fmt.Errorf("%w: not done: %q", recipes.ErrUndecided, missing)
		}
		if err := t.delete(ctx, p, names); !errors.Is(err, znode.ErrReadAgain) {
			return err
		}
	}
}

func (t *twoPhase) delete(ctx context.Context, p protocol, names []string) error {
	all := t.guard(p)
	for _, name := range names {
		all.Delete(t.Child(name), recipes.AnyVersion)
	}
	all.Delete(t.Path(), recipes.AnyVersion)
	at, err := t.commit(ctx, all)
	switch {
	case errors.Is(err, recipes.ErrNoTransaction):
		return nil // another session has deleted the transaction, or an attempt whose reply was lost
	case errors.Is(err, recipes.ErrNotEmpty) && at < len(names):
		return fmt.Errorf("all sites are done, but the transaction cannot be deleted: another client has created znodes below %s; delete them, then call Forget: %w", t.Child(names[at]), err)
	case errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrNotEmpty):
		return znode.ErrReadAgain // a znode was deleted or created since the listing
	}
	return err
}

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

// ID is the ID of the transaction. Each Begin has a new one.
func (s *site) ID() string { return s.protocol.ID }

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
	}
	if err := t.Session.ResumeZnode(path, node.Stat, 0); err != nil && !t.Session.WasResumed(path) {
		return err
	}
	return nil
}
