package znode

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Update replaces the znode's data. It repeats an attempt whose outcome is unknown, which is
// harmless: only this process writes the znode, one write at a time.
func (e *Ephemeral) Update(ctx context.Context, data []byte) error {
	if err := e.beginWrite(ctx); err != nil {
		return fmt.Errorf("update %s: %w", e.path, err)
	}
	defer e.endWrite()
	unknown := false // an earlier attempt may have succeeded
	for {
		err := e.set(ctx, data)
		if err == nil {
			return nil
		}
		unknown = unknown || errors.Is(err, recipes.ErrUnknownOutcome)
		if !errors.Is(err, ErrReadAgain) {
			if unknown && !errors.Is(err, recipes.ErrRemoved) {
				err = UnknownOutcome(err)
			}
			return fmt.Errorf("update: %w", err)
		}
		if err := e.reread(ctx); err != nil && ctx.Err() == nil && e.session.Err() == nil {
			if unknown && !errors.Is(err, recipes.ErrRemoved) {
				err = UnknownOutcome(err)
			}
			return fmt.Errorf("update: %w", err)
		} // otherwise set returns the reason
	}
}

// set makes one attempt. If the error matches ErrReadAgain, the caller rereads the znode and
// tries again. Once ctx is done, that attempt sends nothing and returns ctx's error.
func (e *Ephemeral) set(ctx context.Context, data []byte) error {
	if err := e.Err(); err != nil {
		return err
	}
	stat, err := e.session.SetOnce(ctx, e.path, data, e.version())
	switch {
	case err == nil && stat.Czxid == e.czxid:
		e.setStat(stat)
		return nil
	case e.session.Err() != nil:
		return e.Err()
	case err == nil, // another client's znode, as reread will find
		errors.Is(err, recipes.ErrBadVersion), errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrUnknownOutcome):
		return errors.Join(ErrReadAgain, err)
	}
	return err
}

// beginWrite waits for other writes.
func (e *Ephemeral) beginWrite(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case e.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Ephemeral) endWrite() { <-e.writing }

// Write implements recipes.Grant.
func (e *Ephemeral) Write(ctx context.Context, ops ...recipes.Op) error {
	return session.GuardedWrite(ctx, e.Commit, ops)
}

// Commit commits a transaction together with a check of the znode at its version. The index in
// a *session.TxnError is the operation's index in t.
func (e *Ephemeral) Commit(ctx context.Context, t session.Txn) error {
	if err := e.beginWrite(ctx); err != nil {
		return fmt.Errorf("guarded write: %w", err)
	}
	defer e.endWrite()
	for {
		if err := e.Err(); err != nil {
			return fmt.Errorf("guarded write: %w", err)
		}
		var guarded session.Txn
		guarded.Check(e.path, e.version())
		guarded.Append(t)
		err := e.session.Commit(ctx, guarded)
		var refused *session.TxnError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused) && refused.Index > 0:
			return &session.TxnError{Index: refused.Index - 1, Err: refused.Err}
		case errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrUnknownOutcome):
			return fmt.Errorf("guarded write: %w", e.Err())
		case refused == nil:
			return fmt.Errorf("guarded write: %w", err)
		}
		// Nothing was written: another client has changed or deleted the znode.
		if err := e.reread(ctx); err != nil {
			return fmt.Errorf("guarded write: %w", err)
		}
	}
}
