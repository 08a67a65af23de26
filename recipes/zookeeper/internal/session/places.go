package session

import (
	"context"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// places are the session's own that are not known to be gone, by path. A name can come
// back, and the session may write to each place that has it. A release that took a waiting
// contender for a hold of an older line would be believed by the contender behind. Where a
// later place of this session has the name, the older one is gone. For those of other
// sessions there is the watch.
type places struct {
	mu     sync.Mutex
	byPath map[string]ownPlace
}

type ownPlace struct {
	czxid int64
	// What is watched, or nil: the place, or its parent since before the place was made.
	// As long as the watch has not fired, no other place has the name.
	key   watchKey
	watch *Watch
}

func (p *places) made(place Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPath == nil {
		p.byPath = make(map[string]ownPlace)
	}
	p.byPath[place.Path] = ownPlace{czxid: place.Stat.Czxid}
}

// watched notes what tells that the place is gone.
func (p *places) watched(place Place, key watchKey, watch *Watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPath[place.Path].czxid == place.Stat.Czxid {
		p.byPath[place.Path] = ownPlace{place.Stat.Czxid, key, watch}
	}
}

// stands reports whether the server of the present connection would have told by a watch
// if the place was gone and its name given again.
func (s *Session) stands(place Place) bool {
	s.places.mu.Lock()
	own := s.places.byPath[place.Path]
	s.places.mu.Unlock()
	return own.czxid == place.Stat.Czxid && own.watch != nil && s.watches.waits(own.key, own.watch)
}

// latest reports whether no later place has this one's name.
func (p *places) latest(place Place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byPath[place.Path].czxid == place.Stat.Czxid
}

func (p *places) forget(place Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPath[place.Path].czxid == place.Stat.Czxid {
		delete(p.byPath, place.Path)
	}
}

// deleted forgets the place if err, the result of its deletion, says that it is gone.
// If it does not, its deletion may be tried again.
func (p *places) deleted(place Place, err error) error {
	if err == nil || IsGone(err) {
		p.forget(place)
	}
	return err
}

// ForgetPlace is for a place that is known to be gone. Every place is forgotten,
// deleted or released by a handoff in the end.
func (s *Session) ForgetPlace(place Place) { s.places.forget(place) }

// DeletePlace deletes a place without a handoff, on the terms of
// DeleteOwned. It looks first whether the place is there: another one may have its
// name, with the same version.
func (s *Session) DeletePlace(place Place) <-chan error {
	if !s.places.latest(place) {
		return superseded(place)
	}
	return s.told(func(life context.Context) error { return s.deletePlace(life, place) })
}

// superseded tells that a later place has the name.
func superseded(place Place) <-chan error {
	done := make(chan error, 1)
	done <- fmt.Errorf("delete %s: %w: a later place has its name", place.Path, recipes.ErrNoNode)
	return done
}

func (s *Session) deletePlace(life context.Context, place Place) error {
	stat, err := s.again(life, place.Path, place.Stat)
	if err == nil {
		return s.places.deleted(place, s.deleteOwned(life, place.Path, stat))
	}
	if !IsGone(err) {
		s.log.Error("cannot look at own znode; it goes with the session", "path", place.Path, "error", err)
	}
	return s.places.deleted(place, err)
}
