package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Write implements recipes.Grant.
func (h *Hold) Write(ctx context.Context, ops ...recipes.Op) error {
	return session.GuardedWrite(ctx, h.Commit, ops)
}

// Commit commits a transaction together with a check of the contender's znode. The index in a
// *session.TxnError is the operation's index in t.
//
// The check is for existence. The name of a protected znode contains a GUID, so a znode of that
// name is this contender's. For a bare znode, a second check proves that.
func (h *Hold) Commit(ctx context.Context, t session.Txn) error {
	if err := h.session.TxnFits(t); err != nil {
		return fmt.Errorf("guarded write: %w", err)
	}
	for {
		if err := h.Err(); err != nil {
			return fmt.Errorf("guarded write: %w", err)
		}
		var guarded session.Txn
		guarded.Check(h.path, recipes.AnyVersion)
		if h.bare != nil {
			err := h.bare.check(ctx, &guarded, h.Attach)
			switch {
			case errors.Is(err, recipes.ErrNoNode):
				err = h.Removed()
			case errors.Is(err, recipes.ErrSessionLost):
				err = h.Err()
			}
			if err != nil {
				return fmt.Errorf("guarded write: %w", err)
			}
		}
		checks := guarded.Len()
		guarded.Append(t)
		err := h.session.Commit(ctx, guarded)
		var refused *session.TxnError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused) && refused.Index == 0 && errors.Is(err, recipes.ErrNoNode):
			return fmt.Errorf("guarded write: %w", h.Removed())
		case errors.As(err, &refused) && refused.Index < checks && errors.Is(err, recipes.ErrNoNode):
			h.bare.drop(ctx) // another client has deleted the guard; check creates another one
			continue
		case errors.As(err, &refused) && refused.Index < checks:
			// The error has no index: the check is not one of the caller's operations.
			return fmt.Errorf("guarded write: check of %s: %w", h.path, refused.Err)
		case errors.As(err, &refused):
			return &session.TxnError{Index: refused.Index - checks, Err: refused.Err}
		case errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrUnknownOutcome):
			return fmt.Errorf("guarded write: %w", h.Err())
		}
		return fmt.Errorf("guarded write: %w", err)
	}
}
