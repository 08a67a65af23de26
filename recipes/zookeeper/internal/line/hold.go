package line

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Hold is a contender's turn: it implements recipes.Hold.
type Hold struct {
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

// newHold is of a hold that session.BeginHold has begun.
func newHold(s *session.Session, path string, token recipes.Token) *Hold {
	h := &Hold{
		session: s,
		path:    path,
		token:   token,
		revoked: make(chan struct{}),
		lost:    make(chan struct{}),
	}
	h.mu.Lock()
	h.unlisten = s.OnLost(func() { h.sessionLost() })
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

// NewRevocable returns the turn of a contender whose own znode is at path, on the terms
// of session.BeginHold. asked reports whether that znode's data asks it to give way; nil
// if it cannot be.
func NewRevocable(ctx context.Context, s *session.Session, path string, token recipes.Token, asked func(data []byte) bool) (*Hold, error) {
	if err := s.BeginHold(ctx); err != nil {
		return nil, err
	}
	return Resumed(s, path, token, asked), nil
}

// Err implements recipes.Grant.
func (h *Hold) Err() error {
	// The session's loss reaches the grant in a goroutine; whoever asks does
	// not have to wait for it.
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

// end ends the hold, once, and reports whether it was this
// call that did.
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

// Removed notes that somebody else has deleted the contender's znode.
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

// Yield runs f, which gives the turn to somebody by deleting the contender's znode,
// and ends the grant if it succeeds.
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

// endYielding ends the grant, whose own node is gone, if it is yielding: so when
// Yield returns with an error, the grant has ended by then or ends as removed.
func (h *Hold) endYielding() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.yielding {
		h.endLocked(recipes.ErrReleased) // by the holder's own hand
	}
}

// Attach names a znode, created with the grant's guard, that is deleted when the
// grant ends while the session goes on.
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

// deleteAttached starts the deletion of what goes with the contender's znode.
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

// Conclude ends the grant, as Release does, for a recipe that then deletes the znode by a
// transaction of its own. It reports whether the grant was held.
func (h *Hold) Conclude() bool { return h.end(recipes.ErrReleased) }
