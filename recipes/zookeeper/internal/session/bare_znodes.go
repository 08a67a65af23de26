package session

import (
	"context"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// bareZnodes are the session's own that are not known to be gone, by path. A name can come
// back, and the session may write to each bare znode that has it. A release that took a
// waiting contender for a hold of an older line would be believed by the contender behind.
// Where a later bare znode of this session has the name, the older one is gone. For those
// of other sessions there is the watch.
type bareZnodes struct {
	mu     sync.Mutex
	byPath map[string]ownBare
}

type ownBare struct {
	czxid int64
	// What is watched, or nil: the znode, or its parent since before the znode was made.
	// As long as the watch has not fired, no other znode has the name.
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

// watched notes what tells that the znode is gone.
func (p *bareZnodes) watched(bare BareZnode, key watchKey, watch *Watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPath[bare.Path].czxid == bare.Stat.Czxid {
		p.byPath[bare.Path] = ownBare{bare.Stat.Czxid, key, watch}
	}
}

// stands reports whether the server of the present connection would have told by a watch
// if the znode was gone and its name given again.
func (s *Session) stands(bare BareZnode) bool {
	s.bare.mu.Lock()
	own := s.bare.byPath[bare.Path]
	s.bare.mu.Unlock()
	return own.czxid == bare.Stat.Czxid && own.watch != nil && s.watches.waits(own.key, own.watch)
}

// latest reports whether no later bare znode has this one's name.
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

// deleted forgets the znode if err, the result of its deletion, says that it is gone.
// If it does not, its deletion may be tried again.
func (p *bareZnodes) deleted(bare BareZnode, err error) error {
	if err == nil || IsGone(err) {
		p.forget(bare)
	}
	return err
}

// ForgetBare is for a bare znode that is known to be gone. Every bare znode is forgotten,
// deleted or released by a handoff in the end.
func (s *Session) ForgetBare(bare BareZnode) { s.bare.forget(bare) }

// DeleteBare deletes a bare znode without a handoff, on the terms of
// DeleteOwned. It looks first whether the znode is there: another one may have its
// name, with the same version.
func (s *Session) DeleteBare(bare BareZnode) <-chan error {
	if !s.bare.latest(bare) {
		return superseded(bare)
	}
	return s.told(func(life context.Context) error { return s.deleteBare(life, bare) })
}

// superseded tells that a later bare znode has the name.
func superseded(bare BareZnode) <-chan error {
	done := make(chan error, 1)
	done <- fmt.Errorf("delete %s: %w: a later bare znode has its name", bare.Path, recipes.ErrNoNode)
	return done
}

func (s *Session) deleteBare(life context.Context, bare BareZnode) error {
	stat, err := s.again(life, bare.Path, bare.Stat)
	if err == nil {
		return s.bare.deleted(bare, s.deleteOwned(life, bare.Path, stat))
	}
	if !IsGone(err) {
		s.log.Error("cannot look at own znode; it goes with the session", "path", bare.Path, "error", err)
	}
	return s.bare.deleted(bare, err)
}
