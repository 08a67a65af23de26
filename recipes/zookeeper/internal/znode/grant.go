package znode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Grant is the part that line.Hold and Ephemeral have in common: a znode of the session, on which
// the application relies until the grant ends.
type Grant struct {
	Session *session.Session
	Ended   chan struct{} // closed when the grant ends

	path     string
	token    recipes.Token
	unlisten func() bool // cancels the session's OnLost
	removal  session.Removal
	removing bool // Remove has ended it; only one removal runs at a time

	mu     sync.Mutex
	reason error // why it has ended; nil while it is held
}

// Begin begins the grant of the znode at path. session.BeginHold has succeeded.
func (g *Grant) Begin(s *session.Session, path string, token recipes.Token) {
	g.Session, g.path, g.token, g.Ended = s, path, token, make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unlisten = s.OnLost(g.sessionLost)
}

func (g *Grant) Token() recipes.Token { return g.token }

func (g *Grant) Znode() string { return g.path }

func (g *Grant) Err() error {
	g.sessionLost() // a goroutine also passes on the loss, and Err does not wait for it
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason
}

func (g *Grant) ValidUntil() time.Time {
	if g.Err() != nil {
		return time.Time{}
	}
	return g.Session.ProvedUntil()
}

func (g *Grant) sessionLost() {
	if err := g.Session.Err(); err != nil {
		g.End(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
	}
}

// End ends the grant with that reason and does not delete the znode. It reports whether the
// grant was held.
func (g *Grant) End(reason error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason != nil {
		return false
	}
	g.reason = reason
	close(g.Ended)
	g.unlisten()
	g.Session.EndHold()
	return true
}

// Watch calls gone when another client has deleted the znode, as again finds: it watches the
// znode, or fails with ErrNoNode. Like every wait, it calls again whenever the connection was lost. If
// watch is not nil, the znode is already watched, on the connection that ends with disconnected.
func (g *Grant) Watch(life context.Context, disconnected <-chan struct{}, watch *session.Watch, again func(context.Context) (*session.Watch, error), gone func()) {
	for {
		if watch != nil {
			select {
			case <-watch.Fired():
			case <-disconnected:
			case <-g.Ended:
				return
			case <-life.Done():
				return
			}
		}
		var err error
		if disconnected, err = g.Session.Connected(life); err != nil {
			return
		}
		watch, err = again(life)
		switch {
		case g.Session.Throttled(life, err):
			watch = nil
		case errors.Is(err, recipes.ErrNoNode):
			gone()
			return
		case err != nil:
			if life.Err() == nil { // a deletion would not be noticed, so the grant is not safe
				g.End(fmt.Errorf("%w: %w %s: %w", recipes.ErrNotHeld, session.ErrUnwatched, g.path, err))
			}
			return
		}
	}
}

// Remove ends the grant and runs remove, which deletes the znode: see session.Removal. lost is why
// the grant had already ended, or nil.
func (g *Grant) Remove(ctx context.Context, what string, remove func(lost error, settle func(error))) error {
	return g.removal.Run(ctx, what+" "+g.path, func(settle func(error)) {
		g.removing = g.End(recipes.ErrReleased) || g.removing
		var lost error
		if !g.removing {
			lost = g.Err()
		}
		remove(lost, settle)
	})
}

// Commit commits a transaction together with the checks that check adds. The index in a
// *session.TxnError is the operation's index in t. If a check fails, Commit calls refused, and
// tries again unless that returns an error.
func (g *Grant) Commit(ctx context.Context, t session.Txn, check func(*session.Txn) error, refused func(*session.TxnError) error) error {
	for {
		var guarded session.Txn
		err := g.Err()
		if err == nil {
			err = check(&guarded)
		}
		if err != nil {
			return fmt.Errorf("guarded write: %w", err)
		}
		checks := guarded.Len()
		guarded.Append(t)
		err = g.Session.Commit(ctx, guarded)
		var refusal *session.TxnError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refusal) && refusal.Index >= checks:
			return &session.TxnError{Index: refusal.Index - checks, Err: refusal.Err}
		case refusal != nil:
			err = refused(refusal) // nothing was written
		case errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrUnknownOutcome):
			err = g.Err()
		}
		if err != nil {
			return fmt.Errorf("guarded write: %w", err)
		}
	}
}
