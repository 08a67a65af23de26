package simulation

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func elections(*World) game {
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		return electionTurn(ctx, c, s, "/election", "")
	}}
}

// electionTurn campaigns, acknowledges where the dialect supports that, and leads for a while.
func electionTurn(ctx context.Context, c *client, s recipes.Client, path string, d recipes.Dialect) error {
	e, err := s.Election(path, recipes.ElectionConfig{Dialect: d, Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
	if err != nil {
		return err
	}
	return take(ctx, c, &grant{session: s, path: path, journaled: true}, 1, func(wait context.Context) (recipes.Leadership, error) {
		leadership, err := e.Campaign(wait, []byte(c.name))
		if err == nil && d == "" && c.chance.chance(50) {
			err := leadership.Acknowledge(ctx, nil)
			c.note("acknowledged %s: %v", leadership.Znode(), err)
		}
		return leadership, err
	}, recipes.Leadership.Resign)
}

func electionKind(c *client) kind {
	strategy := choose(c, recipes.Strategies()...)
	return kindOf("/election", 1, false, func(s recipes.Client, joined func(recipes.Place)) (recipes.Election, error) {
		return s.Election("/election", recipes.ElectionConfig{Strategy: strategy, Joined: joined})
	}, func(e recipes.Election, ctx context.Context) (recipes.Leadership, error) { return e.Campaign(ctx, nil) }, recipes.Leadership.Resign)
}
