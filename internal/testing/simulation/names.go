package simulation

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

const namesPath = "/names"

func names(*World) game { return game{turn: nameTurn} }

// nameTurn registers a name that only one client can have, and unregisters it.
func nameTurn(ctx context.Context, c *client, s recipes.Client) error {
	n, err := s.Names(namesPath)
	if err != nil {
		return err
	}
	err = take(ctx, c, &grant{session: s, path: namesPath, journaled: true}, 1, func(ctx context.Context) (recipes.Registration, error) {
		return n.Register(ctx, "owner", []byte(c.name))
	}, recipes.Registration.Unregister)
	if errors.Is(err, recipes.ErrNodeExists) {
		return nil // a name has no wait queue
	}
	return err
}

func nameKind(*client) kind {
	k := kindOf(namesPath, 1, false, func(s recipes.Client, _ func(recipes.Place)) (recipes.Names, error) {
		return s.Names(namesPath)
	}, func(n recipes.Names, ctx context.Context) (recipes.Registration, error) {
		return n.Register(ctx, "owner", nil)
	}, recipes.Registration.Unregister)
	k.unqueued = true
	return k
}
