package line

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/session"
)

// Grant is a contender's turn: it implements recipes.Grant, and Release.
type Grant struct {
	session *session.Session
	path    string
	token   recipes.Token
	asked   func(data []byte) bool // nil if it cannot be asked to give way
	place   *placeGuard            // nil if the name is used once

	lost     chan struct{}
	unlisten func() bool // stops listening for the session's loss
	guard    sync.Once   // starts the watch on the own node
	release  sync.Once
	released chan struct{} // closed when result is set
	revoked  chan struct{}
	result   error

	mu        sync.Mutex
	reason    error    // why it stands no longer
	yielding  bool     // a transaction of one's own may be deleting the own node
	appendage []string // znodes that go with the own one
}

func newGrant(s *session.Session, path string, token recipes.Token) *Grant {
	g := &Grant{
		session:  s,
		path:     path,
		token:    token,
		revoked:  make(chan struct{}),
		lost:     make(chan struct{}),
		released: make(chan struct{}),
	}
	g.mu.Lock()
	g.unlisten = s.OnLost(func() { g.sessionLost() })
	g.mu.Unlock()
	return g
}

// Token implements recipes.Grant.
func (g *Grant) Token() recipes.Token { return g.token }

// Znode implements recipes.Grant.
func (g *Grant) Znode() string { return g.path }

// Lost implements recipes.Grant.
func (g *Grant) Lost() <-chan struct{} {
	g.guard.Do(func() { g.session.Background(g.watchOwn) })
	return g.lost
}

// NewRevocable returns the turn of a contender whose own znode is at path. asked
// reports whether that znode's data asks it to give way; nil if it cannot be.
func NewRevocable(s *session.Session, path string, token recipes.Token, asked func(data []byte) bool) *Grant {
	g := newGrant(s, path, token)
	g.asked = asked
	return g
}

// Revoked is closed when the contender was asked to give way. Like Lost it
// watches only from the first call on.
func (g *Grant) Revoked() <-chan struct{} {
	g.Lost()
	return g.revoked
}

// heed notes what the own node's data says. It is called by one goroutine.
func (g *Grant) heed(data []byte) {
	if g.asked != nil && !g.wasAsked() && g.asked(data) {
		close(g.revoked)
	}
}

func (g *Grant) wasAsked() bool {
	select {
	case <-g.revoked:
		return true
	default:
		return false
	}
}

// Err implements recipes.Grant.
func (g *Grant) Err() error {
	// The session's loss reaches the grant in a goroutine; whoever asks does
	// not have to wait for it.
	g.sessionLost()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason
}

func (g *Grant) sessionLost() {
	if err := g.session.Err(); err != nil {
		g.end(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
	}
}

// end makes the grant stand no longer, once, and reports whether it was this
// call that did.
func (g *Grant) end(reason error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason != nil {
		return false
	}
	g.reason = reason
	close(g.lost)
	g.unlisten()
	return true
}

// Removed notes that somebody else has deleted the own node.
func (g *Grant) Removed() error {
	reason := recipes.ErrRemoved
	if g.wasAsked() {
		reason = recipes.ErrRevoked
	}
	err := fmt.Errorf("%w: %s", reason, g.path)
	if g.end(err) {
		g.deleteAppendage()
	}
	return err
}

// Yield runs f, which gives the turn to somebody by deleting the own node, and
// ends the grant if it succeeds.
func (g *Grant) Yield(f func() error) error {
	g.setYielding(true)
	err := f()
	if err == nil {
		g.end(recipes.ErrReleased)
		return nil
	}
	g.setYielding(false)
	return err
}

func (g *Grant) setYielding(yielding bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.yielding = yielding
}

func (g *Grant) isYielding() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.yielding
}

// watchOwn waits for the deletion of the own node by somebody else. Like every
// wait it looks again whenever the connection was lost.
func (g *Grant) watchOwn(ctx context.Context) {
	for {
		disconnected, err := g.session.Connected(ctx)
		if err != nil {
			return
		}
		node, watch, err := g.look(ctx)
		if errors.Is(err, recipes.ErrNoNode) {
			if g.isYielding() {
				g.end(recipes.ErrReleased) // by the holder's own hand
			}
			g.Removed()
			return
		}
		if err != nil {
			if ctx.Err() == nil {
				// Its removal would not be noticed, so it cannot be relied on.
				g.end(fmt.Errorf("%w: cannot watch %s: %w", recipes.ErrNotHeld, g.path, err))
			}
			return
		}
		g.heed(node.Data)
		select {
		case <-watch.Fired():
		case <-disconnected:
		case <-g.lost:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Write implements recipes.Grant.
func (g *Grant) Write(ctx context.Context, ops ...recipes.Op) error {
	return g.WriteIf(ctx, session.Txn{}, ops...)
}

// WriteIf is Write with more to check, which is done first. The index in a
// *session.TxnError is that of the operation in checks.
func (g *Grant) WriteIf(ctx context.Context, checks session.Txn, ops ...recipes.Op) error {
	t, first := checks, checks.Len()
	for i, op := range ops {
		if err := op.Validate(); err != nil {
			return fmt.Errorf("guarded write: operation %d: %w", i, err)
		}
		switch op.Kind {
		case recipes.OpCreate:
			t.Create(op.Path, op.Data, false)
		case recipes.OpSet:
			t.Set(op.Path, op.Data, op.Version)
		case recipes.OpDelete:
			t.Delete(op.Path, op.Version)
		}
	}
	err := g.Commit(ctx, t)
	var refused *session.TxnError
	if errors.As(err, &refused) && refused.Index >= first {
		i := refused.Index - first
		return &recipes.WriteError{Index: i, Op: ops[i], Err: refused.Err}
	}
	return err
}

// look reads the own node, if there is something to read, and watches it.
func (g *Grant) look(ctx context.Context) (session.Node, *session.Watch, error) {
	if g.place == nil {
		return g.session.GetW(ctx, g.path)
	}
	watch, err := g.place.watch(ctx)
	return session.Node{}, watch, err
}

// Commit commits a transaction together with a check of the own node. The index
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
		if g.place != nil {
			err := g.place.check(ctx, &guarded, g.Append)
			if errors.Is(err, recipes.ErrNoNode) {
				err = g.Removed()
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
			g.place.drop() // somebody has deleted the guard; another will do
			continue
		case errors.As(err, &refused) && refused.Index < checks:
			// Not by its own index: the check is none of the caller's operations.
			return fmt.Errorf("guarded write: check of %s: %w", g.path, refused.Err)
		case errors.As(err, &refused):
			return &session.TxnError{Index: refused.Index - checks, Err: refused.Err}
		case errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrUnknownOutcome):
			return fmt.Errorf("guarded write: %w", g.Err())
		}
		return fmt.Errorf("guarded write: %w", err)
	}
}

// Append names a znode, created with the grant's guard, that is deleted when the
// grant ends while the session goes on.
func (g *Grant) Append(path string) {
	g.mu.Lock()
	if !slices.Contains(g.appendage, path) {
		g.appendage = append(g.appendage, path)
	}
	ended := g.reason != nil
	g.mu.Unlock()
	if ended {
		g.deleteAppendage()
	}
}

// deleteAppendage starts the deletion of what goes with the own node.
func (g *Grant) deleteAppendage() []<-chan error {
	g.mu.Lock()
	paths := g.appendage
	g.appendage = nil
	g.mu.Unlock()
	var deletions []<-chan error
	for _, path := range paths {
		deletions = append(deletions, g.session.Delete(path))
	}
	return deletions
}

// Release gives the turn to the next in line, as recipes.Hold documents.
func (g *Grant) Release(ctx context.Context) error {
	first := false
	g.release.Do(func() { first = true })
	if first {
		g.giveBack(ctx)
	}
	select {
	case <-g.released:
		return g.result
	case <-ctx.Done():
		return fmt.Errorf("release %s: %w", g.path, ctx.Err())
	}
}

// giveBack deletes the own node. What it cannot wait for goes on without it.
func (g *Grant) giveBack(ctx context.Context) {
	if !g.end(recipes.ErrReleased) {
		g.mu.Lock()
		g.result = g.reason
		g.mu.Unlock()
		close(g.released)
		return
	}
	var deletion <-chan error
	if g.place != nil {
		deletion = g.session.HandOver(ctx, g.place.Place)
	} else {
		deletion = g.session.Delete(g.path)
	}
	select {
	case err := <-deletion:
		if !g.hasAppendage() {
			g.given(err)
			return
		}
		again := make(chan error, 1)
		again <- err
		deletion = again
	default:
	}
	rest := func(context.Context) { g.given(<-deletion) }
	if !g.session.Background(rest) {
		rest(nil) // the session is over: this does not wait
	}
}

func (g *Grant) hasAppendage() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.appendage) > 0
}

// given deletes what goes with the own node, which is deleted, or not, because of
// err, and tells who waits for the release: as long as the own node exists, a
// transaction that its check lets through could add to what goes with it.
func (g *Grant) given(err error) {
	defer close(g.released)
	for _, deletion := range g.deleteAppendage() {
		<-deletion
	}
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		g.result = fmt.Errorf("release: %w: %s", recipes.ErrRemoved, g.path)
	case errors.Is(err, recipes.ErrSessionLost):
		g.result = fmt.Errorf("release: %w: %w", recipes.ErrNotHeld, err)
	case err != nil:
		g.result = fmt.Errorf("release: %w", err)
	}
}
