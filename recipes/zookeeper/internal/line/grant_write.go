package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Write implements recipes.Grant.
func (g *Grant) Write(ctx context.Context, ops ...recipes.Op) error {
	return session.GuardedWrite(ctx, g.Commit, ops)
}

// Commit commits a transaction together with a check of the contender's znode. The index
// in a *session.TxnError is that of the operation in t.
//
// The check is for existence: the name holds a GUID, so a node of that name is
// this contender's; or a second check makes sure of that.
func (g *Grant) Commit(ctx context.Context, t session.Txn) error {
	if err := g.session.TxnFits(t); err != nil {
		return fmt.Errorf("guarded write: %w", err)
	}
	for {
		if err := g.Err(); err != nil {
			return fmt.Errorf("guarded write: %w", err)
		}
		var guarded session.Txn
		guarded.Check(g.path, recipes.AnyVersion)
		if g.bare != nil {
			err := g.bare.check(ctx, &guarded, g.Attach)
			switch {
			case errors.Is(err, recipes.ErrNoNode):
				err = g.Removed()
			case errors.Is(err, recipes.ErrSessionLost):
				err = g.Err()
			}
			if err != nil {
				return fmt.Errorf("guarded write: %w", err)
			}
		}
		checks := guarded.Len()
		guarded.Append(t)
		err := g.session.Commit(ctx, guarded)
		var refused *session.TxnError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused) && refused.Index == 0 && errors.Is(err, recipes.ErrNoNode):
			return fmt.Errorf("guarded write: %w", g.Removed())
		case errors.As(err, &refused) && refused.Index < checks && errors.Is(err, recipes.ErrNoNode):
			g.bare.drop(ctx) // somebody has deleted the guard; another will do
			continue
		case errors.As(err, &refused) && refused.Index < checks:
			// Not by its own index: the check is not one of the caller's operations.
			return fmt.Errorf("guarded write: check of %s: %w", g.path, refused.Err)
		case errors.As(err, &refused):
			return &session.TxnError{Index: refused.Index - checks, Err: refused.Err}
		case errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrUnknownOutcome):
			return fmt.Errorf("guarded write: %w", g.Err())
		}
		return fmt.Errorf("guarded write: %w", err)
	}
}
