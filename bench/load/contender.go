package load

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// contender takes turns at the contended path over a session of its own.
type contender struct {
	id    int64 // from 1; 0 is nobody
	enter func(context.Context) (turn, error)
}

// turn is a grant of either recipe.
//
// Done is never asked for: its first call costs a read and a watch event, which
// belong to whoever wants to know and not to the handoff.
type turn struct {
	token recipes.Token
	leave func(context.Context) error
}

// contenders returns one contender for each session. joined is called whenever
// one of them has joined the line.
func (l Load) contenders(joined func(id int64)) ([]contender, error) {
	all := make([]contender, len(l.Sessions))
	for i, session := range l.Sessions {
		id := int64(i + 1)
		enter, err := l.enter(session, func(recipes.Place) { joined(id) })
		if err != nil {
			return nil, err
		}
		all[i] = contender{id: id, enter: enter}
	}
	return all, nil
}

// enter returns how to take a turn at the recipe over a session.
func (l Load) enter(s recipes.Recipes, joined func(recipes.Place)) (func(context.Context) (turn, error), error) {
	switch l.Recipe {
	case Lock:
		lock, err := s.Lock(l.Path, recipes.LockConfig{Strategy: l.Strategy, Joined: joined})
		return func(ctx context.Context) (turn, error) {
			hold, err := lock.Acquire(ctx)
			if err != nil {
				return turn{}, fmt.Errorf("acquire %s: %w", l.Path, err)
			}
			return turn{hold.Token(), hold.Release}, nil
		}, err
	case Election:
		election, err := s.Election(l.Path, recipes.ElectionConfig{Strategy: l.Strategy, Joined: joined})
		return func(ctx context.Context) (turn, error) {
			leadership, err := election.Campaign(ctx, nil)
			if err != nil {
				return turn{}, fmt.Errorf("campaign %s: %w", l.Path, err)
			}
			return turn{leadership.Token(), leadership.Resign}, nil
		}, err
	}
	return nil, fmt.Errorf("recipe %q is unknown", l.Recipe)
}
