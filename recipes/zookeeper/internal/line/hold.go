package line

import (
	"context"
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
