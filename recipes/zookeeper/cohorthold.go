package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// cohortHold is the hold of one contender of a cohort.
type cohortHold struct {
	turn    *turn
	token   recipes.Token
	version int32 // of the path's data while it stands
	lost    chan struct{}

	// Guarded by cohorts.mu:
	reason   error // why it stands no longer
	released bool  // by its own Release
	back     bool  // with which the grant went
}

// Token implements recipes.Grant.
func (h *cohortHold) Token() recipes.Token { return h.token }

// Znode implements recipes.Grant.
func (h *cohortHold) Znode() string { return h.turn.grant.Znode() }

// Done implements recipes.Grant.
func (h *cohortHold) Done() <-chan struct{} {
	c := h.turn.cohort
	c.all.mu.Lock()
	h.turn.watch()
	c.all.mu.Unlock()
	_ = h.Err() // in case that the session was over
	return h.lost
}

// Err implements recipes.Grant.
func (h *cohortHold) Err() error {
	c := h.turn.cohort
	if h.turn.grant.Err() != nil {
		c.drop(h.turn) // if it was not given back
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return h.reason
}

// Write implements recipes.Grant. That the znode is there does not say that this
// hold stands, for the next one has the same. That the path was not written to
// since this hold was stamped, does.
func (h *cohortHold) Write(ctx context.Context, ops ...recipes.Op) error {
	if err := h.Err(); err != nil {
		return fmt.Errorf("guarded write: %w", err)
	}
	var stamped session.Txn
	stamped.Check(h.turn.cohort.path, h.version)
	err := h.turn.grant.WriteIf(ctx, stamped, ops...)
	var refused *session.TxnError
	if errors.As(err, &refused) && errors.Is(err, recipes.ErrBadVersion) {
		return fmt.Errorf("guarded write: %w", h.overwritten())
	}
	if errors.Is(err, recipes.ErrNotHeld) {
		if reason := h.Err(); reason != nil {
			return fmt.Errorf("guarded write: %w", reason)
		}
	}
	return err
}

// overwritten ends the hold because its stamp is not there any more, unless it
// has ended before.
func (h *cohortHold) overwritten() error {
	c := h.turn.cohort
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if h.reason == nil {
		h.turn.known = false
		h.turn.end(fmt.Errorf("%w: another hand has changed the data of %s", recipes.ErrNotHeld, c.path))
		c.proceed()
	}
	return h.reason
}

// Release implements recipes.Hold. It passes the turn on, or gives it back.
func (h *cohortHold) Release(ctx context.Context) error {
	_ = h.Err() // notes a loss
	t, c := h.turn, h.turn.cohort
	c.all.mu.Lock()
	if h.reason == nil {
		h.released = true
		t.end(recipes.ErrReleased)
		c.proceed()
		h.back = t.giving
	}
	released, back, reason := h.released, h.back, h.reason
	c.all.mu.Unlock()
	switch {
	case !released:
		return reason
	case !back:
		return nil
	}
	select {
	case <-t.gone:
		return t.result
	case <-ctx.Done():
		return fmt.Errorf("release %s: %w", t.grant.Znode(), ctx.Err())
	}
}
