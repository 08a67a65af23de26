package line

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Hold is the grant of a contender. It implements recipes.Hold.
type Hold struct {
	session *session.Session
	path    string
	token   recipes.Token
	asked   func(data []byte) bool // nil if the contender cannot be asked to give way
	bare    *bareGuard             // nil if the name is used only once

	lost     chan struct{}
	unlisten func() bool // cancels the session's OnLost
	inspects func()      // stops the inspection of the path; nil if there is none
	guard    sync.Once   // starts watchOwn
	removal  session.Removal
	revoked  chan struct{}

	mu        sync.Mutex
	reason    error    // why the hold has ended; nil while it is held
	releasing bool     // Release has ended it
	yielding  bool     // Yield may be deleting the contender's znode
	attached  []string // znodes that are deleted with the contender's
}

// Resumed returns the hold of a contender for which session.BeginHold, directly or in ResumeHeld,
// has succeeded. asked is explained at NewRevocable.
func Resumed(s *session.Session, path string, token recipes.Token, asked func(data []byte) bool) *Hold {
	h := &Hold{
		session: s,
		path:    path,
		token:   token,
		asked:   asked,
		revoked: make(chan struct{}),
		lost:    make(chan struct{}),
	}
	h.mu.Lock()
	h.unlisten = s.OnLost(h.sessionLost)
	h.mu.Unlock()
	return h
}

// Token implements recipes.Grant.
func (h *Hold) Token() recipes.Token { return h.token }

// Znode implements recipes.Grant.
func (h *Hold) Znode() string { return h.path }

// Done implements recipes.Grant.
func (h *Hold) Done() <-chan struct{} {
	h.guard.Do(func() { h.session.Background(h.watchOwn) })
	return h.lost
}

// NewRevocable begins a hold with session.BeginHold, for the contender whose znode is at path.
// asked reports whether the data of that znode ask the holder to give way. It is nil if the
// recipe has no revocation.
func NewRevocable(ctx context.Context, s *session.Session, path string, token recipes.Token, asked func(data []byte) bool) (*Hold, error) {
	if err := s.BeginHold(ctx); err != nil {
		return nil, err
	}
	return Resumed(s, path, token, asked), nil
}

// Err implements recipes.Grant.
func (h *Hold) Err() error {
	// A goroutine passes the session's loss to the grant. Err does not wait for it.
	h.sessionLost()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reason
}

func (h *Hold) sessionLost() {
	if err := h.session.Err(); err != nil {
		h.end(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
	}
}

// end ends the hold with that reason, unless it has already ended, and reports whether it did.
func (h *Hold) end(reason error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.endLocked(reason)
}

func (h *Hold) endLocked(reason error) bool {
	if h.reason != nil {
		return false
	}
	h.reason = reason
	close(h.lost)
	h.unlisten()
	if h.inspects != nil {
		h.inspects()
	}
	h.session.EndHold()
	return true
}

// Removed ends the hold because another client has deleted the contender's znode.
func (h *Hold) Removed() error {
	reason := recipes.ErrRemoved
	if h.wasAsked() {
		reason = recipes.ErrRevoked
	}
	err := fmt.Errorf("%w: %s", reason, h.path)
	if h.end(err) {
		if h.bare != nil {
			h.session.ForgetBare(h.bare.BareZnode)
		}
		h.deleteAttached()
	}
	return err
}

// Yield runs f, which grants another contender by deleting this contender's znode. If f
// succeeds the hold ends.
func (h *Hold) Yield(f func() error) error {
	h.setYielding(true)
	err := f()
	if err == nil {
		h.end(recipes.ErrReleased)
		return nil
	}
	h.setYielding(false)
	return err
}

func (h *Hold) setYielding(yielding bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.yielding = yielding
}

// endYielding ends a hold whose znode is deleted while Yield runs. So when Yield returns an
// error, the hold has ended as released or will end as removed.
func (h *Hold) endYielding() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.yielding {
		h.endLocked(recipes.ErrReleased) // the holder itself has deleted it
	}
}

// Attach adds a znode, created under the grant's guard, that is deleted when the grant ends
// while the session lives.
func (h *Hold) Attach(path string) {
	h.mu.Lock()
	if !slices.Contains(h.attached, path) {
		h.attached = append(h.attached, path)
	}
	ended := h.reason != nil
	h.mu.Unlock()
	if ended {
		h.deleteAttached()
	}
}

// deleteAttached starts the deletion of the attached znodes.
func (h *Hold) deleteAttached() []<-chan error {
	h.mu.Lock()
	paths := h.attached
	h.attached = nil
	h.mu.Unlock()
	var deletions []<-chan error
	for _, path := range paths {
		deletions = append(deletions, h.session.Delete(path))
	}
	return deletions
}

// Conclude ends the hold as released. The recipe then deletes the znode in its own transaction.
// Conclude reports whether the grant was held.
func (h *Hold) Conclude() bool { return h.end(recipes.ErrReleased) }

// Release implements recipes.Hold.
func (h *Hold) Release(ctx context.Context) error {
	return h.removal.Run(ctx, "release "+h.path, func(settle func(error)) { h.giveBack(ctx, settle) })
}

// giveBack deletes the contender's znode. If the deletion takes longer, it continues in the
// background.
func (h *Hold) giveBack(ctx context.Context, settle func(error)) {
	lost := h.beginRelease()
	// If a hold has ended while its znode exists, the znode must still be deleted.
	if lost != nil && !errors.Is(lost, session.ErrUnwatched) && !errors.Is(lost, recipes.ErrForeign) {
		settle(lost)
		return
	}
	var deletion <-chan error
	switch {
	case h.bare == nil:
		deletion = h.session.Delete(h.path)
	case lost != nil:
		deletion = h.session.DeleteBare(h.bare.BareZnode)
	default:
		deletion = h.session.Handoff(ctx, h.bare.BareZnode)
	}
	settled := func(err error) { settle(h.afterDeletion(lost, err)) }
	select {
	case err := <-deletion:
		if !h.hasAttached() {
			settled(err)
			return
		}
		again := make(chan error, 1)
		again <- err
		deletion = again
	default:
	}
	rest := func(context.Context) { settled(<-deletion) }
	if !h.session.Background(rest) {
		rest(nil) // the session has ended, so this does not wait
	}
}

// beginRelease ends the hold, or returns why it has already ended.
func (h *Hold) beginRelease() (lost error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endLocked(recipes.ErrReleased) {
		h.releasing = true
	}
	if h.releasing {
		return nil
	}
	return h.reason
}

func (h *Hold) hasAttached() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.attached) > 0
}

// afterDeletion deletes the attached znodes and returns the result of the release. err is the result of
// deleting the contender's znode. lost is why the hold had already ended, or nil. The attached
// znodes must be deleted last: as long as the contender's znode exists, a transaction that
// checks it may add to them.
func (h *Hold) afterDeletion(lost, err error) error {
	if err != nil && !session.IsGone(err) {
		return fmt.Errorf("release: %w", err) // the znode still exists
	}
	for _, deletion := range h.deleteAttached() {
		<-deletion
	}
	switch {
	case lost != nil:
		return lost
	case errors.Is(err, recipes.ErrNoNode):
		return fmt.Errorf("release: %w: %s", recipes.ErrRemoved, h.path)
	case errors.Is(err, recipes.ErrSessionLost):
		return fmt.Errorf("release: %w: %w", recipes.ErrNotHeld, err)
	}
	return nil
}

// Revoked is closed when another client has asked the holder to give way. Like Done, it watches
// from its first call on.
func (h *Hold) Revoked() <-chan struct{} {
	h.Done()
	return h.revoked
}

// noteRevocation closes revoked if the data of the contender's znode ask for that. Only one
// goroutine calls it.
func (h *Hold) noteRevocation(data []byte) {
	if h.asked != nil && !h.wasAsked() && h.asked(data) {
		close(h.revoked)
	}
}

func (h *Hold) wasAsked() bool { return session.Happened(h.revoked) }

// watchOwn ends the hold when another client deletes the contender's znode. Like every wait, it
// reads again whenever the connection was lost.
func (h *Hold) watchOwn(ctx context.Context) {
	for {
		disconnected, err := h.session.Connected(ctx)
		if err != nil {
			return
		}
		node, watch, err := h.watch(ctx)
		if h.session.Throttled(ctx, err) {
			continue
		}
		if errors.Is(err, recipes.ErrNoNode) {
			h.endYielding()
			h.Removed()
			return
		}
		if err != nil {
			if ctx.Err() == nil {
				// A deletion would not be noticed, so the hold is not safe.
				h.end(fmt.Errorf("%w: %w %s: %w", recipes.ErrNotHeld, session.ErrUnwatched, h.path, err))
			}
			return
		}
		h.noteRevocation(node.Data)
		select {
		case <-watch.Fired():
		case <-disconnected:
		case <-h.lost:
			return
		case <-ctx.Done():
			return
		}
	}
}

// watch watches the contender's znode, and reads it unless it is a bare znode.
func (h *Hold) watch(ctx context.Context) (session.Node, *session.Watch, error) {
	if h.bare == nil {
		return h.session.GetW(ctx, h.path)
	}
	watch, err := h.bare.watch(ctx)
	return session.Node{}, watch, err
}

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
