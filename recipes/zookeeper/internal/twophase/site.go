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

func (s *site) own() string { return s.child(sitePrefix + s.name) }

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

// create creates the site's own node, together with a record that stays: a node
// that is missing though it was there is a site that has died, and one that is
// missing and was not is a site that has yet to join. Whoever looks can tell,
// whenever he came.
func (s *site) create(ctx context.Context) error {
	join := s.guard(s.protocol)
	join.Create(s.child(joinedPrefix+s.name), nil, false)
	join.Create(s.own(), nil, true)
	_, err := s.commit(ctx, join)
	if errors.Is(err, recipes.ErrNodeExists) {
		return s.rejoin(ctx) // perhaps by the attempt whose reply was lost
	}
	return err
}

// rejoin joins again what has joined before: with the node of this session, or
// to learn the decision.
func (s *site) rejoin(ctx context.Context) error {
	stat, err := s.session.Stat(ctx, s.own())
	if err == nil && stat.EphemeralOwner == s.session.ID() {
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

// Vote writes the vote if the node has the version of one that nobody has
// written. Whoever finds it written reads by whom: the same vote is the own one,
// sent before.
func (s *site) Vote(ctx context.Context, vote recipes.Vote) error {
	if err := vote.Validate(); err != nil {
		return s.failed(err)
	}
	write := s.guard(s.protocol)
	write.Set(s.own(), []byte(vote), 0)
	at, err := s.commit(ctx, write)
	switch {
	case err == nil:
		return nil
	case at == 0 && errors.Is(err, recipes.ErrBadVersion):
		return s.compare(ctx, vote)
	case at == 0 && errors.Is(err, recipes.ErrNoNode) && s.protocol.Variant == recipes.OwnNodes:
		return s.failed(fmt.Errorf("%w: site %s is dead", recipes.ErrRemoved, s.name))
	}
	return s.failed(err)
}

func (s *site) compare(ctx context.Context, vote recipes.Vote) error {
	node, err := s.session.Get(ctx, s.own())
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		err = znode.UnknownOutcome(err) // it may be this vote
	}
	if err != nil {
		return s.failed(err)
	}
	if recipes.Vote(node.Data) != vote {
		return s.failed(fmt.Errorf("%w: site %s for %q", recipes.ErrVoted, s.name, node.Data))
	}
	return nil
}

func (s *site) Done(ctx context.Context) error {
	_, decided, err := s.decision(ctx, s.protocol)
	if err == nil && !decided {
		if _, err = s.session.Stat(ctx, s.child(idPrefix+s.protocol.ID)); err == nil {
			err = recipes.ErrUndecided
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
	if _, err := s.forget(ctx); err != nil { // who is not done yet deletes it later
		return s.failed(err)
	}
	return nil
}

func (t *twoPhase) Forget(ctx context.Context) error {
	missing, err := t.forget(ctx)
	if err != nil {
		return t.failed(err)
	}
	if len(missing) > 0 {
		return t.failed(fmt.Errorf("%w: not done: %q", recipes.ErrUndecided, missing))
	}
	return nil
}

// forget deletes the transaction if all sites are done; missing are those that
// are not. There is nothing to delete if somebody else was faster.
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
		return nil // by somebody else, or the attempt whose reply was lost
	case errors.Is(err, recipes.ErrNotEmpty) && at < len(names):
		return fmt.Errorf("all sites are done, and something that is not the transaction's keeps it from being deleted; delete what is below %s, then Forget: %w", t.child(names[at]), err)
	case errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrNotEmpty):
		return znode.ErrReadAgain // an ephemeral one has gone, or a node has come
	}
	return err
}
