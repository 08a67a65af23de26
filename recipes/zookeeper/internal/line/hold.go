package line

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// Hold is the grant of a contender. It implements recipes.Hold.
type Hold struct {
	znode.Grant
	asked func(data []byte) bool // nil if the contender cannot be asked to give way
	bare  *bareGuard             // nil if the name is used only once
	slot  *int                   // the number in its znode; nil: it has none. See Line.Claim

	guard   sync.Once // starts Watch
	revoked chan struct{}

	mu       sync.Mutex
	yielding bool     // Yield may be deleting the contender's znode
	attached []string // znodes that are deleted with the contender's
}

// Resumed returns the hold of a contender for which session.BeginHold, directly or in ResumeHeld,
// has succeeded. asked is explained at NewRevocable.
func Resumed(s *session.Session, path string, token recipes.Token, asked func(data []byte) bool) *Hold {
	h := &Hold{asked: asked, revoked: make(chan struct{})}
	h.Begin(s, path, token)
	return h
}

// Number returns the number that Line.Claim has claimed.
func (h *Hold) Number() int { return *h.slot }

func (h *Hold) Done() <-chan struct{} {
	h.guard.Do(func() { h.Session.Background(h.watchOwn) })
	return h.Ended
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

// Removed ends the hold because another client has deleted the contender's znode.
func (h *Hold) Removed() error {
	reason := recipes.ErrRemoved
	if h.wasAsked() {
		reason = recipes.ErrRevoked
	}
	err := fmt.Errorf("%w: %s", reason, h.Znode())
	if h.slot != nil {
		err = overwritten(h.Znode())
	}
	if h.End(err) {
		if h.bare != nil {
			h.Session.ForgetBare(h.bare.BareZnode)
		}
		if h.slot != nil {
			h.Session.Delete(h.Znode()) // with other data it would still occupy a permit
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
		h.End(recipes.ErrReleased)
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
		h.End(recipes.ErrReleased) // the holder itself has deleted it
	}
}

// Attach adds a znode, created under the grant's guard, that is deleted when the grant ends
// while the session lives.
func (h *Hold) Attach(path string) {
	h.mu.Lock()
	if !slices.Contains(h.attached, path) {
		h.attached = append(h.attached, path)
	}
	h.mu.Unlock()
	if session.Happened(h.Ended) {
		h.deleteAttached()
	}
}

func (h *Hold) deleteAttached() []<-chan error {
	h.mu.Lock()
	paths := h.attached
	h.attached = nil
	h.mu.Unlock()
	var deletions []<-chan error
	for _, path := range paths {
		deletions = append(deletions, h.Session.Delete(path))
	}
	return deletions
}

// Conclude ends the hold as released. The recipe then deletes the znode in its own transaction.
// Conclude reports whether the grant was held.
func (h *Hold) Conclude() bool { return h.End(recipes.ErrReleased) }

func (h *Hold) Release(ctx context.Context) error {
	return h.Remove(ctx, "release", func(lost error, settle func(error)) { h.giveBack(ctx, lost, settle) })
}

// giveBack deletes the contender's znode. If the deletion takes longer, it continues in the
// background.
func (h *Hold) giveBack(ctx context.Context, lost error, settle func(error)) {
	// If a hold has ended while its znode exists, the znode must still be deleted.
	if lost != nil && !errors.Is(lost, session.ErrUnwatched) && !errors.Is(lost, recipes.ErrForeign) {
		settle(lost)
		return
	}
	var deletion <-chan error
	switch {
	case h.bare == nil:
		deletion = h.Session.Delete(h.Znode())
	case lost != nil:
		deletion = h.Session.DeleteBare(h.bare.BareZnode)
	default:
		deletion = h.Session.Handoff(ctx, h.bare.BareZnode)
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
	if !h.Session.Background(rest) {
		rest(nil) // the session has ended, so rest does not wait
	}
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
		return fmt.Errorf("release: %w: %s", recipes.ErrRemoved, h.Znode())
	case errors.Is(err, recipes.ErrSessionLost):
		return fmt.Errorf("release: %w: %w", recipes.ErrNotHeld, err)
	}
	return nil
}

// Revoked is closed when another client has asked the holder to give way. Like Done, the first
// call sets the watch.
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

// watchOwn ends the hold when another client deletes the contender's znode.
func (h *Hold) watchOwn(ctx context.Context) {
	h.Watch(ctx, nil, nil, func(ctx context.Context) (*session.Watch, error) {
		node, watch, err := h.watch(ctx)
		if err == nil {
			h.noteRevocation(node.Data)
		}
		if err == nil && h.slot != nil && node.Stat.Version != claimed {
			err = fmt.Errorf("%w with this number: %s", recipes.ErrNoNode, h.Znode())
		}
		return watch, err
	}, h.gone)
}

// gone ends the hold because its znode was found deleted.
func (h *Hold) gone() {
	h.endYielding()
	h.Removed()
}

// watch watches the contender's znode, and reads it unless it is a bare znode.
func (h *Hold) watch(ctx context.Context) (session.Node, *session.Watch, error) {
	if h.bare == nil {
		return h.Session.GetW(ctx, h.Znode())
	}
	watch, err := h.bare.watch(ctx)
	return session.Node{}, watch, err
}

func (h *Hold) Write(ctx context.Context, ops ...recipes.Op) error {
	return h.Grant.Write(ctx, ops, h.Commit)
}

// Commit commits a transaction together with a check of the contender's znode and of others. The
// index in a *session.TxnError is the operation's index in t.
func (h *Hold) Commit(ctx context.Context, t session.Txn, others ...znode.Guard) error {
	if err := h.Session.TxnFits(t); err != nil {
		return fmt.Errorf("guarded write: %w", err)
	}
	return znode.Commit(ctx, h.Session, t, append([]znode.Guard{h}, others...))
}

// Check implements znode.Guard.
//
// The check is for existence, and for the number if there is one. The name of a protected znode
// contains a GUID, so a znode of that name is this contender's. For a bare znode, a second check
// proves that.
func (h *Hold) Check(ctx context.Context, guarded *session.Txn) error {
	version := recipes.AnyVersion
	if h.slot != nil {
		version = claimed
	}
	guarded.Check(h.Znode(), version)
	if h.bare == nil {
		return nil
	}
	err := h.bare.check(ctx, guarded, h.Attach)
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		return h.Removed()
	case errors.Is(err, recipes.ErrSessionLost):
		return h.Err()
	}
	return err
}

// Refused implements znode.Guard.
func (h *Hold) Refused(ctx context.Context, refused *session.TxnError) error {
	switch {
	case h.slot != nil && errors.Is(refused, recipes.ErrBadVersion):
		return h.Removed()
	case !errors.Is(refused, recipes.ErrNoNode):
		// The error has no index: the check is not one of the caller's operations.
		return fmt.Errorf("check of %s: %w", h.Znode(), refused.Err)
	case refused.Index == 0:
		return h.Removed()
	}
	h.bare.drop(ctx) // another client has deleted the guard; check creates another one
	return nil
}

// bareGuard identifies the bare znode of a hold. Its name is not enough, because it is used again
// if the path of the wait queue is deleted and created again.
type bareGuard struct {
	session.BareZnode
	session *session.Session
	marker  string

	writing chan struct{} // a mutex that can be awaited with a context: full while it is locked
	guard   string        // the path of the guard, see check; "" if there is none
	seen    bool          // the znode was read after the guard was created
}

// newBareHold is Resumed for a bare znode.
func newBareHold(s *session.Session, bare session.BareZnode, marker string) *Hold {
	h := Resumed(s, bare.Path, recipes.Token(bare.Stat.Czxid), nil)
	h.bare = &bareGuard{BareZnode: bare, session: s, marker: marker, writing: make(chan struct{}, 1)}
	return h
}

// watch watches for the znode's deletion. It returns ErrNoNode if the znode is already deleted.
func (p *bareGuard) watch(ctx context.Context) (*session.Watch, error) {
	watch, err := p.session.BareW(ctx, p.BareZnode)
	if err != nil || !fired(watch) {
		return watch, err
	}
	stat, err := p.session.Stat(ctx, p.Path)
	if err == nil && stat.Czxid != p.Stat.Czxid {
		err = fmt.Errorf("%w: %s", recipes.ErrNoNode, p.Path)
	}
	return watch, err
}

// guardsDir is the directory of a wait queue's guards. It is a child of the path, so that
// guards do not use numbers of the path. Its own name ends with a number larger than any. Some
// libraries take every child of a lock for a contender and fail on one without a number. They
// sort guardsDir behind all contenders.
//
// It must be below the path. A guard proves that the path was not deleted and created again
// only if it is deleted with the path. All other children of the path are ephemeral and have no
// children. Libraries that only count the children (Curator's InterProcessSemaphoreV2) also
// count guardsDir.
func (p *bareGuard) guardsDir() string {
	return gopath.Join(gopath.Dir(p.Path), "guards-"+p.marker+"9999999999")
}

// check adds a check of the guard, an ephemeral znode below the path, to a transaction that checks
// the znode's name. As long as the guard exists, the path was not created again, so no name in it
// was used twice. The znode was read after the guard was created. So the name belongs to the
// znode. The first check of a grant creates the guard, which costs one write and one read.
func (p *bareGuard) check(ctx context.Context, t *session.Txn, made func(path string)) error {
	select {
	case p.writing <- struct{}{}:
		defer func() { <-p.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.guard == "" {
		guard, err := p.session.CreateProtected(ctx, p.guardsDir(), "guard-", nil)
		if err != nil {
			return err
		}
		made(guard)
		p.guard, p.seen = guard, false
	}
	if !p.seen {
		stat, err := p.session.Stat(ctx, p.Path)
		if err == nil && stat.Czxid != p.Stat.Czxid {
			err = fmt.Errorf("%w: %s", recipes.ErrNoNode, p.Path)
		}
		if err != nil {
			return err
		}
		p.seen = true
	}
	t.Check(p.guard, recipes.AnyVersion)
	return nil
}

// drop forgets a guard that was found deleted. If ctx is done first, the guard stays, and the next
// write finds again that it is deleted.
func (p *bareGuard) drop(ctx context.Context) {
	select {
	case p.writing <- struct{}{}:
		p.guard = ""
		<-p.writing
	case <-ctx.Done():
	}
}
