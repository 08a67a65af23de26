package simulation

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func elections(*World) game { return game{turn: electionTurn} }

// electionTurn campaigns, acknowledges and leads for a while.
func electionTurn(ctx context.Context, c *client, s recipes.Session) error {
	const path = "/election"
	unconfirmed := c.chance.chance(50)
	e, err := s.Election(path, recipes.ElectionConfig{Strategy: pick(c.chance, recipes.Strategies()...), Unconfirmed: unconfirmed, Joined: c.joined})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	leadership, err := e.Campaign(wait, []byte(c.name))
	if err != nil {
		return err
	}
	if c.chance.chance(50) {
		err := leadership.Acknowledge(ctx, nil)
		c.note("acknowledged %s: %v", leadership.Znode(), err)
	}
	return c.hold(ctx, &grant{client: c, session: s, path: path, Grant: leadership, journaled: true, unconfirmed: unconfirmed}, 1, leadership.Resign)
}
