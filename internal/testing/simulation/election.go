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

// electionTurn campaigns, acknowledges where the dialect has that, and leads for a while.
func electionTurn(ctx context.Context, c *client, s recipes.Client, path string, d recipes.Dialect) error {
	e, err := s.Election(path, recipes.ElectionConfig{Dialect: d, Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	leadership, err := e.Campaign(wait, []byte(c.name))
	if err != nil {
		return err
	}
	if d == "" && c.chance.chance(50) {
		err := leadership.Acknowledge(ctx, nil)
		c.note("acknowledged %s: %v", leadership.Znode(), err)
	}
	return c.hold(ctx, &grant{client: c, session: s, path: path, Grant: leadership, journaled: true}, 1, leadership.Resign)
}
