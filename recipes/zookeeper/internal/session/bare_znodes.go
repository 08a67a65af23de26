package session

import (
	"context"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// bareZnodes holds the session's bare znodes that are not known to be deleted, by path. A name
// can be used again, and the session may write to each bare znode that has it. Suppose that the
// wait queue was deleted and the name now belongs to a waiter. If the session released its old
// hold by that name, the waiter's successor would accept that as the waiter's release. byPath
// shows whether the name belongs to a later bare znode of this session. A watch shows whether it
// belongs to another session's.
type bareZnodes struct {
	mu     sync.Mutex
	byPath map[string]ownBare
}

type ownBare struct {
	czxid int64
	// The watch on the znode, or on its parent since before the znode was created; or nil. As
	// long as the watch has not fired, no other znode has the name.
	key   watchKey
	watch *Watch
}

func (p *bareZnodes) made(bare BareZnode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPath == nil {
		p.byPath = make(map[string]ownBare)
	}
	p.byPath[bare.Path] = ownBare{czxid: bare.Stat.Czxid}
}

// watched records the watch that fires if the znode is deleted.
func (p *bareZnodes) watched(bare BareZnode, key watchKey, watch *Watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPath[bare.Path].czxid == bare.Stat.Czxid {
		p.byPath[bare.Path] = ownBare{bare.Stat.Czxid, key, watch}
	}
}

// deletionWatched reports whether the server of the current connection has a watch that would
// have fired if the znode had been deleted.
func (s *Session) deletionWatched(bare BareZnode) bool {
	s.bare.mu.Lock()
	own := s.bare.byPath[bare.Path]
	s.bare.mu.Unlock()
	return own.czxid == bare.Stat.Czxid && own.watch != nil && s.watches.armed(own.key, own.watch)
}

// latest reports whether no later bare znode of this session has the same name.
func (p *bareZnodes) latest(bare BareZnode) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byPath[bare.Path].czxid == bare.Stat.Czxid
}

func (p *bareZnodes) forget(bare BareZnode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPath[bare.Path].czxid == bare.Stat.Czxid {
		delete(p.byPath, bare.Path)
	}
}

// deleted forgets the znode if err, the result of its deletion, means that it does not exist.
// Otherwise the caller may delete it again.
func (p *bareZnodes) deleted(bare BareZnode, err error) error {
	if err == nil || IsGone(err) {
		p.forget(bare)
	}
	return err
}

// ForgetBare forgets a bare znode that is known to be deleted. Each bare znode ends with
// ForgetBare, DeleteBare or Handoff.
func (s *Session) ForgetBare(bare BareZnode) { s.bare.forget(bare) }

// DeleteBare deletes a bare znode without a handoff, with the guarantees of DeleteOwned. It
// first checks that the znode exists: another one may have its name and the same version.
func (s *Session) DeleteBare(bare BareZnode) <-chan error {
	if !s.bare.latest(bare) {
		return superseded(bare)
	}
	return s.inBackground(func(life context.Context) error { return s.deleteBare(life, bare) })
}

// superseded returns the result for a bare znode whose name a later one has.
func superseded(bare BareZnode) <-chan error {
	done := make(chan error, 1)
	done <- fmt.Errorf("delete %s: %w: a later bare znode has its name", bare.Path, recipes.ErrNoNode)
	return done
}

func (s *Session) deleteBare(life context.Context, bare BareZnode) error {
	stat, err := s.reread(life, bare.Path, bare.Stat)
	if err == nil {
		return s.bare.deleted(bare, s.deleteOwned(life, bare.Path, stat))
	}
	if !IsGone(err) {
		s.log.Error("cannot read own znode; it is deleted with the session", "path", bare.Path, "error", err)
	}
	return s.bare.deleted(bare, err)
}
