package twophase

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// site is a participant.
type site struct {
	*twoPhase
	name     string
	payload  []byte
	protocol protocol
}

func (s *site) Name() string    { return s.name }
func (s *site) Payload() []byte { return s.payload }

func (s *site) znode() string { return s.child(sitePrefix + s.name) }

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

// create creates the site's znode, together with a record that remains. If the znode is
// missing and the record exists, the site has died. If both are missing, the site has
// not joined yet. So any session can distinguish the two, whenever it looks.
func (s *site) create(ctx context.Context) error {
	join := s.guard(s.protocol)
	join.Create(s.child(joinedPrefix+s.name), nil, false)
	join.Create(s.znode(), nil, true)
	_, err := s.commit(ctx, join)
	if errors.Is(err, recipes.ErrNodeExists) {
		return s.joinAgain(ctx) // perhaps by the attempt whose reply was lost
	}
	return err
}

// joinAgain joins a site that has joined before: with the znode of this session, or to
// learn the decision.
func (s *site) joinAgain(ctx context.Context) error {
	stat, err := s.session.Stat(ctx, s.znode())
	if err == nil && stat.EphemeralOwner == s.session.ID() {
		s.session.MarkResumed(s.znode()) // it may be from before session.Resume
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

// Vote writes the vote if the znode has the version of one that was never written. If
// it was written before, Vote compares: the same vote is this one, sent before.
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
				continue // it went in between, and only the guard tells whether all did
			}
		case at == 0 && errors.Is(err, recipes.ErrNoNode) && s.protocol.Variant == recipes.OwnNodes:
			err = fmt.Errorf("%w: site %s is dead", recipes.ErrRemoved, s.name)
		case at == 0 && errors.Is(err, recipes.ErrNoNode): // the guard has found the transaction
			err = fmt.Errorf("%w: that of site %s", recipes.ErrRemoved, s.name)
		}
		if err != nil {
			err = s.failed(err)
		}
		return err
	}
}

// compare is nil if the vote that was written before is this one.
func (s *site) compare(ctx context.Context, vote recipes.Vote) error {
	node, err := s.session.Get(ctx, s.znode())
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		return err
	case err != nil:
		return znode.UnknownOutcome(err) // it may be this vote
	case recipes.Vote(node.Data) != vote:
		return fmt.Errorf("%w: site %s for %q", recipes.ErrVoted, s.name, node.Data)
	}
	return nil
}

func (s *site) Done(ctx context.Context) error {
	err := s.undecided(ctx)
	if errors.Is(err, recipes.ErrUndecided) { // the server may not know the decision yet
		if err = s.session.Sync(ctx, s.path); err == nil {
			err = s.undecided(ctx)
		}
	}
	if errors.Is(err, recipes.ErrNoTransaction) || errors.Is(err, recipes.ErrNoNode) {
		return nil // all are done
	}
	if err != nil {
		return s.failed(err)
	}
	done := s.guard(s.protocol)
	done.Create(s.child(donePrefix+s.name), nil, false)
	_, err = s.commit(ctx, done)
	switch {
	case errors.Is(err, recipes.ErrNoTransaction):
		return nil // all are done
	case err != nil && !errors.Is(err, recipes.ErrNodeExists):
		return s.failed(err)
	}
	if _, err := s.forget(ctx); err != nil { // the last site that is done deletes it
		return s.failed(err)
	}
	return nil
}

// undecided is nil if the site may end its part.
func (s *site) undecided(ctx context.Context) error {
	_, decided, err := s.decision(ctx, s.protocol)
	if err != nil || decided {
		return err
	}
	if _, err := s.session.Stat(ctx, s.child(idPrefix+s.protocol.ID)); err != nil {
		return err
	}
	return recipes.ErrUndecided
}

func (t *twoPhase) Forget(ctx context.Context) error {
	missing, err := t.forget(ctx)
	if err == nil && len(missing) > 0 { // the server may not know yet that they are done
		if err = t.session.Sync(ctx, t.path); err == nil {
			missing, err = t.forget(ctx)
		}
	}
	if err != nil {
		return t.failed(err)
	}
	if len(missing) > 0 {
		return t.failed(fmt.Errorf("%w: not done: %q", recipes.ErrUndecided, missing))
	}
	return nil
}

// forget deletes the transaction if all sites are done. missing are the sites that are
// not done. If another session was faster there is nothing to delete.
func (t *twoPhase) forget(ctx context.Context) (missing []string, err error) {
	p, err := t.protocol(ctx)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for {
		names, err := t.session.Children(ctx, t.path)
		if errors.Is(err, recipes.ErrNoNode) || err == nil && !slices.Contains(names, idPrefix+p.ID) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, s := range p.Sites {
			if !slices.Contains(names, donePrefix+s) {
				missing = append(missing, s)
			}
		}
		if len(missing) > 0 {
			return missing, nil
		}
		if err := t.delete(ctx, p, names); !errors.Is(err, znode.ErrReadAgain) {
			return nil, err
		}
	}
}

// delete deletes the transaction with its children.
func (t *twoPhase) delete(ctx context.Context, p protocol, names []string) error {
	all := t.guard(p)
	for _, name := range names {
		all.Delete(t.child(name), recipes.AnyVersion)
	}
	all.Delete(t.path, recipes.AnyVersion)
	at, err := t.commit(ctx, all)
	switch {
	case errors.Is(err, recipes.ErrNoTransaction):
		return nil // another session deleted it, or the attempt whose reply was lost
	case errors.Is(err, recipes.ErrNotEmpty) && at < len(names):
		return fmt.Errorf("all sites are done, but the transaction cannot be deleted: another client has created znodes below %s; delete them, then call Forget: %w", t.child(names[at]), err)
	case errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrNotEmpty):
		return znode.ErrReadAgain // an ephemeral znode has gone, or a new one has come
	}
	return err
}
