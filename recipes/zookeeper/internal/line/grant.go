package line

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Grant is a contender's turn: it implements recipes.Grant, and Release.
type Grant struct {
	session *session.Session
	path    string
	token   recipes.Token
	asked   func(data []byte) bool // nil if it cannot be asked to give way
	bare    *bareGuard             // nil if the name is used once

	lost     chan struct{}
	unlisten func() bool // stops listening for the session's loss
	inspects func()      // stops the inspection of the path; nil if there is none
	guard    sync.Once   // starts the watch on the own node
	removal  session.Removal
	revoked  chan struct{}

	mu        sync.Mutex
	reason    error    // why it stands no longer
	releasing bool     // it stands no longer because of Release
	yielding  bool     // a transaction of one's own may be deleting the own node
	attached  []string // znodes that go with the own one
}

// newGrant is the grant of a hold that session.BeginHold has begun.
func newGrant(s *session.Session, path string, token recipes.Token) *Grant {
	g := &Grant{
		session: s,
		path:    path,
		token:   token,
		revoked: make(chan struct{}),
		lost:    make(chan struct{}),
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

// Done implements recipes.Grant.
func (g *Grant) Done() <-chan struct{} {
	g.guard.Do(func() { g.session.Background(g.watchOwn) })
	return g.lost
}

// NewRevocable returns the turn of a contender whose own znode is at path, on the terms
// of session.BeginHold. asked reports whether that znode's data asks it to give way; nil
// if it cannot be.
func NewRevocable(ctx context.Context, s *session.Session, path string, token recipes.Token, asked func(data []byte) bool) (*Grant, error) {
	if err := s.BeginHold(ctx); err != nil {
		return nil, err
	}
	return Resumed(s, path, token, asked), nil
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
	return g.endLocked(reason)
}

func (g *Grant) endLocked(reason error) bool {
	if g.reason != nil {
		return false
	}
	g.reason = reason
	close(g.lost)
	g.unlisten()
	if g.inspects != nil {
		g.inspects()
	}
	g.session.EndHold()
	return true
}

// Removed notes that somebody else has deleted the contender's znode.
func (g *Grant) Removed() error {
	reason := recipes.ErrRemoved
	if g.wasAsked() {
		reason = recipes.ErrRevoked
	}
	err := fmt.Errorf("%w: %s", reason, g.path)
	if g.end(err) {
		if g.bare != nil {
			g.session.ForgetBare(g.bare.BareZnode)
		}
		g.deleteAttached()
	}
	return err
}

// Yield runs f, which gives the turn to somebody by deleting the contender's znode,
// and ends the grant if it succeeds.
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

// endYielding ends the grant, whose own node is gone, if it is yielding: so when
// Yield returns with an error, the grant has ended by then or ends as removed.
func (g *Grant) endYielding() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.yielding {
		g.endLocked(recipes.ErrReleased) // by the holder's own hand
	}
}

// Attach names a znode, created with the grant's guard, that is deleted when the
// grant ends while the session goes on.
func (g *Grant) Attach(path string) {
	g.mu.Lock()
	if !slices.Contains(g.attached, path) {
		g.attached = append(g.attached, path)
	}
	ended := g.reason != nil
	g.mu.Unlock()
	if ended {
		g.deleteAttached()
	}
}

// deleteAttached starts the deletion of what goes with the contender's znode.
func (g *Grant) deleteAttached() []<-chan error {
	g.mu.Lock()
	paths := g.attached
	g.attached = nil
	g.mu.Unlock()
	var deletions []<-chan error
	for _, path := range paths {
		deletions = append(deletions, g.session.Delete(path))
	}
	return deletions
}

// Conclude ends the grant, as Release does, for a recipe that then deletes the znode by a
// transaction of its own. It reports whether the grant was held.
func (g *Grant) Conclude() bool { return g.end(recipes.ErrReleased) }
