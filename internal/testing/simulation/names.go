package simulation

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func names(*World) game { return game{turn: nameTurn} }

// nameTurn takes a name that only one can have, and gives it back.
func nameTurn(ctx context.Context, c *client, s recipes.Client) error {
	const path = "/names"
	n, err := s.Names(path)
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	r, err := n.Register(wait, "owner", []byte(c.name))
	if errors.Is(err, recipes.ErrNodeExists) {
		return nil // nobody waits for a name
	}
	if err != nil {
		return err
	}
	return c.hold(ctx, &grant{client: c, session: s, path: path, Grant: r, journaled: true}, 1, r.Unregister)
}
