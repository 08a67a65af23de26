package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Update replaces the node's data. Sending it again is harmless: only this
// process writes the node, one write at a time.
func (o *owned) Update(ctx context.Context, data []byte) error {
	if err := o.begin(ctx); err != nil {
		return fmt.Errorf("update %s: %w", o.path, err)
	}
	defer o.done()
	unknown := false // an attempt may have been carried out
	for {
		err := o.set(ctx, data)
		if err == nil {
			return nil
		}
		unknown = unknown || errors.Is(err, recipes.ErrUnknownOutcome)
		if !errors.Is(err, errLookAgain) {
			if unknown && !errors.Is(err, recipes.ErrUnknownOutcome) && !errors.Is(err, recipes.ErrRemoved) {
				err = unknownOutcome(err)
			}
			return fmt.Errorf("update: %w", err)
		}
		if err := o.look(ctx); err != nil && ctx.Err() == nil && o.session.Err() == nil {
			return fmt.Errorf("update: %w", err)
		} // else set says why
	}
}

// set makes one attempt. The error matches errLookAgain if another should be
// made, with what is then known of the node; when ctx has ended that sends nothing
// and says so.
func (o *owned) set(ctx context.Context, data []byte) error {
	if err := o.Err(); err != nil {
		return err
	}
	stat, err := o.session.SetOnce(ctx, o.path, data, o.version())
	switch {
	case err == nil && stat.Czxid == o.czxid:
		o.know(stat)
		return nil
	case o.session.Err() != nil:
		return o.Err()
	case err == nil, // another's node, that look will find
		errors.Is(err, recipes.ErrBadVersion), errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrUnknownOutcome):
		return errors.Join(errLookAgain, err)
	}
	return err
}

// begin waits for the own turn to write.
func (o *owned) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case o.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *owned) done() { <-o.writing }

// Write implements recipes.Grant.
func (o *owned) Write(ctx context.Context, ops ...recipes.Op) error {
	return session.GuardedWrite(ctx, o.Commit, ops)
}

// Commit commits a transaction together with a check of the own node at its
// version. The index in a *session.TxnError is that of the operation in t.
func (o *owned) Commit(ctx context.Context, t session.Txn) error {
	if err := o.begin(ctx); err != nil {
		return fmt.Errorf("guarded write: %w", err)
	}
	defer o.done()
	for {
		if err := o.Err(); err != nil {
			return fmt.Errorf("guarded write: %w", err)
		}
		var guarded session.Txn
		guarded.Check(o.path, o.version())
		guarded.Append(t)
		err := o.session.Commit(ctx, guarded)
		var refused *session.TxnError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused) && refused.Index > 0:
			return &session.TxnError{Index: refused.Index - 1, Err: refused.Err}
		case errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrUnknownOutcome):
			return fmt.Errorf("guarded write: %w", o.Err())
		case refused == nil:
			return fmt.Errorf("guarded write: %w", err)
		}
		// Nothing was written: another hand has changed or removed the node.
		if err := o.look(ctx); err != nil {
			return fmt.Errorf("guarded write: %w", err)
		}
	}
}
