package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// GuardedWrite converts ops to a transaction, which commit sends together with its guard. Its
// errors are those that recipes.Grant.Write documents.
func GuardedWrite(ctx context.Context, commit func(context.Context, Txn) error, ops []recipes.Op) error {
	var t Txn
	for i, op := range ops {
		if err := op.Validate(); err != nil {
			return fmt.Errorf("guarded write: operation %d: %w", i, err)
		}
		switch op.Kind() {
		case "create":
			t.Create(op.Path, op.Data, false)
		case "set":
			t.Set(op.Path, op.Data, op.Version)
		case "delete":
			t.Delete(op.Path, op.Version)
		}
	}
	err := commit(ctx, t)
	var refused *TxnError
	if errors.As(err, &refused) {
		return &recipes.WriteError{Index: refused.Index, Op: ops[refused.Index], Err: refused.Err}
	}
	return err
}
