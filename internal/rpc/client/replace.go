package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Pause has calls of the plugin's sessions wait, and sessions that would be opened there,
// until GoOn or another plugin serves them. It returns when nothing is under way whose
// outcome would be unknown if the plugin ended. It waits for at most patience for sessions
// that are being opened, and then for changes. Calls that can be repeated are not waited for.
func (p *Plugin) Pause(ctx context.Context, patience time.Duration) {
	p.mu.Lock()
	p.paused = make(chan struct{})
	p.mu.Unlock()
	opens, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	await(opens, p.opened, func() bool { return p.openings() == 0 })
	var held []*generation
	for _, s := range p.serving() {
		held = append(held, s.holdBack())
	}
	changes, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, t := range held {
		await(changes, t.idle, func() bool { return t.changes.Load() == 0 })
	}
}

// await waits until done, which is asked again after each signal, or for ctx.
func await(ctx context.Context, signals <-chan struct{}, done func() bool) {
	for !done() {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
	}
}

// signal puts one into a channel that holds one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// GoOn undoes Pause.
func (p *Plugin) GoOn() {
	p.mu.Lock()
	close(p.paused)
	p.paused = nil
	p.mu.Unlock()
	for _, s := range p.serving() {
		s.goOn()
	}
}

// Movable returns nil if no session of the plugin is lost because another plugin resumes it
// now. It waits for at most patience for sessions that are Suspended. An error says which
// session cannot be moved, and why.
func (p *Plugin) Movable(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, s := range p.serving() {
		if err := s.movable(ctx, p); err != nil {
			return fmt.Errorf("session %#x cannot be moved now: %w", s.id, err)
		}
	}
	return nil
}

// movable is Movable for one session. A session that moves has no connection to ZooKeeper for
// a while, and its deadline counts on. In an outage it needs all that is left.
func (s *session) movable(ctx context.Context, p *Plugin) error {
	for {
		left, timeout := s.clock.remaining(), s.Timeout()
		s.mu.Lock()
		t, changed := s.newest, s.changed
		over := s.err != nil || t.plugin != p || t.over.Err() != nil // there is nothing to move
		state := t.state
		s.mu.Unlock()
		switch {
		case over:
			return nil
		case state == recipes.Connected && left < timeout/4:
			return fmt.Errorf("%v of its timeout (%v) are left", left.Round(time.Millisecond), timeout)
		case state == recipes.Connected:
			return nil
		}
		select {
		case <-changed:
		case <-s.over.Done():
		case <-ctx.Done():
			return fmt.Errorf("%w: the plugin has no connection to ZooKeeper", recipes.ErrUnavailable)
		}
	}
}

// Configs returns the configurations of the sessions that the plugin serves, each once.
func (p *Plugin) Configs() (all []recipes.SessionConfig) {
	for _, s := range p.serving() {
		if !slices.ContainsFunc(all, func(c recipes.SessionConfig) bool { return reflect.DeepEqual(c, s.cfg) }) {
			all = append(all, s.cfg)
		}
	}
	return all
}

// LetGo has a paused plugin let go of its sessions, until ctx ends. If all is true, it has
// nothing that it would close by itself at its end but what was closed already. The caller
// ends its process then in any way, and otherwise kills it. A session that it let go of goes
// on in the next plugin when Left was called.
//
// moved waits for that. It returns the reason of one that was lost before, or ctx's error.
func (p *Plugin) LetGo(ctx context.Context) (all bool, moved func(context.Context) error) {
	var kept atomic.Bool
	kept.Store(p.openings() > 0) // nothing else is opened while the plugin is paused
	sessions := slices.DeleteFunc(p.serving(), func(s *session) bool { return s.clock.contacted().IsZero() })
	var work sync.WaitGroup
	for _, s := range sessions {
		work.Go(func() {
			if !s.detach(ctx) {
				kept.Store(true)
			}
		})
	}
	work.Wait()
	return !kept.Load(), func(ctx context.Context) error { return movedFrom(ctx, p, sessions) }
}

func movedFrom(ctx context.Context, p *Plugin, sessions []*session) (err error) {
	lost := 0
	for _, s := range sessions {
		reason := s.movedFrom(ctx, p)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if reason != nil && !errors.Is(reason, recipes.ErrClosed) {
			lost, err = lost+1, reason
		}
	}
	if lost > 0 {
		err = fmt.Errorf("%d of %d sessions were not resumed: %w", lost, len(sessions), err)
	}
	return err
}

func (p *Plugin) openings() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opening
}

// serving returns the sessions that the plugin serves.
func (p *Plugin) serving() []*session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.sessions))
}

// holdBack has calls wait.
func (s *session) holdBack() *generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.newest
	t.held = true
	if s.err == nil && s.serving.Load() == t {
		s.serve(nil)
	}
	return t
}

func (s *session) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest.held = false
	s.serveReady(s.newest)
}

// serveReady has t serve the session, as soon as it can and may. It needs mu.
func (s *session) serveReady(t *generation) {
	if s.err == nil && t.over.Err() == nil && t.ready && !t.held {
		s.serve(t)
	}
}

// detach has the plugin let go of the session. It reports whether the plugin has nothing to
// close.
func (s *session) detach(ctx context.Context) bool {
	s.mu.Lock()
	t := s.newest
	if s.err != nil {
		s.mu.Unlock()
		return true
	}
	if !s.resumable {
		s.mu.Unlock()
		return false
	}
	t.leaving = make(chan struct{})
	s.mu.Unlock()
	_, err := s.sessions.Detach(t.plugin.to(ctx), &pb.DetachRequest{Session: s.handle})
	_, said := wire.Error(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.letGo, t.unheard = err == nil, err != nil && !said
	close(t.leaving)
	return t.letGo
}

// leaves returns what is closed when the plugin has been asked to let go of the session,
// and has answered or ended. It is nil if the plugin was not asked.
func (s *session) leaves(t *generation) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.leaving
}

// wasLetGo reports whether the plugin has let go of the session. The stream may have told
// that before the answer did. It counts if there is no answer: LetGo has not waited for it,
// and has the plugin killed.
func (s *session) wasLetGo(t *generation, told bool) bool {
	leaving := s.leaves(t)
	if leaving == nil {
		return false
	}
	select {
	case <-leaving:
	case <-s.over.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.letGo = t.letGo || told && t.unheard
	return t.letGo
}

// isLoss reports whether the reason in STATE_LOST is one why a session is lost. Of a session
// that was let go a plugin tells none.
func isLoss(why error) bool {
	for _, reason := range []error{recipes.ErrExpired, recipes.ErrDeadline, recipes.ErrClosed, recipes.ErrPluginLost, recipes.ErrAuthFailed} {
		if errors.Is(why, reason) {
			return true
		}
	}
	return false
}

// isFree reports whether nobody serves the session any more, now that its stream has ended,
// and it was not closed. It waits for the process to end.
func (s *session) isFree(t *generation) bool {
	if !s.wasLetGo(t, false) {
		return t.plugin.died(s.over)
	}
	select {
	case <-t.plugin.left:
		return true
	case <-s.over.Done():
		return false
	}
}

// movedFrom waits until another plugin than p serves the session. It returns why the session
// was lost before.
func (s *session) movedFrom(ctx context.Context, p *Plugin) error {
	for {
		s.mu.Lock() // so that the state is told too
		t, changed := s.serving.Load(), s.changed
		s.mu.Unlock()
		if t != nil && t.plugin != p {
			return nil
		}
		select {
		case <-changed:
		case <-s.over.Done():
			return s.Err()
		case <-ctx.Done():
			return nil
		}
	}
}
