package line

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// TakeUp takes up a turn that another process was granted in the line, in this session:
// see session.Resume. znode and token are the turn's. It decides as for a contender that
// arrives: a listing shows nobody ahead that blocks it, and a look at its znode after
// that shows this session's, created by the transaction that is the token. So whatever
// the caller says, nothing is granted that the line does not grant.
//
// Where the turn does not stand, the error matches recipes.ErrNotHeld; if the znode is
// gone or is another one, recipes.ErrRemoved too. The line is left as it is.
func (l *Line) TakeUp(ctx context.Context, znode string, token recipes.Token) (*Grant, error) {
	name := gopath.Base(znode)
	parsed := Parse([]string{name}, l.Markers...)
	if gopath.Join(l.Path, name) != znode || len(parsed) == 0 {
		return nil, fmt.Errorf("take up: %w: %q is not a contender of %s", recipes.ErrInvalid, znode, l.Path)
	}
	if err := l.stillFirst(ctx, name); err != nil {
		return nil, fmt.Errorf("take up: %w", err)
	}
	node, err := Own(ctx, l.Session, znode, token)
	if err != nil {
		return nil, err
	}
	var g *Grant
	if _, ok := session.PlaceData(node.Data); ok && parsed[0].Bare() {
		place := session.Place{Path: znode, Stat: node.Stat}
		l.Session.AdoptPlace(place)
		g = newPlaceGrant(l.Session, place, parsed[0].Kind)
	} else {
		g = NewRevocable(l.Session, znode, token, l.Asked)
	}
	l.Session.Keep(znode)
	return g, nil
}

// stillFirst checks that nobody ahead blocks the contender of that name. Foreign
// contenders do not matter: they came when the turn had been granted.
func (l *Line) stillFirst(ctx context.Context, name string) error {
	for {
		entries, err := l.Entries(ctx)
		if err != nil {
			return err
		}
		position := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
		if position < 0 {
			return fmt.Errorf("%w: %s", recipes.ErrRemoved, gopath.Join(l.Path, name))
		}
		me := entries[position]
		blockers := l.Rule(entries[:position], me)
		if len(blockers) < max(l.Permits, 1) {
			return nil
		}
		nearest := blockers[len(blockers)-1]
		if l.Passes != nil {
			passes, err := l.tryPass(ctx, nearest, l.Passes(me, nearest))
			switch {
			case errors.Is(err, recipes.ErrNoNode):
				continue // it left between the listing and the look
			case err != nil:
				return err
			case passes:
				return nil
			}
		}
		return fmt.Errorf("%w: %s waits behind %s", recipes.ErrNotHeld, me.Name, nearest.Name)
	}
}

// Own reads a znode that this session has created by the transaction that is token. If
// it is not there, the error matches recipes.ErrRemoved.
func Own(ctx context.Context, s *session.Session, znode string, token recipes.Token) (session.Node, error) {
	node, err := s.GetSynced(ctx, znode)
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		return node, fmt.Errorf("take up: %w: %s", recipes.ErrRemoved, znode)
	case err != nil:
		return node, fmt.Errorf("take up: %w", err)
	case node.Stat.EphemeralOwner != s.ID():
		return node, fmt.Errorf("take up: %w: %s belongs to another session", recipes.ErrRemoved, znode)
	case node.Stat.Czxid != int64(token):
		return node, fmt.Errorf("take up: %w: %s was created again: its token is %d, not %d", recipes.ErrRemoved, znode, node.Stat.Czxid, token)
	}
	return node, nil
}
