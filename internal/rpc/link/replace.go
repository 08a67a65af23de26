package link

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

// Pause makes calls of the plugin's sessions wait, and Open calls too, until Unpause is called
// or another plugin serves them. It returns when no call is in progress whose outcome would
// be unknown if the plugin ended. It does not wait for calls that can be repeated. It waits
// at most patience for sessions that are being opened, and then at most patience for changes.
func (p *Plugin) Pause(ctx context.Context, patience time.Duration) {
	p.mu.Lock()
	p.paused = make(chan struct{})
	p.mu.Unlock()
	opens, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	await(opens, p.opened, func() bool { return p.openings() == 0 })
	var held []*generation
	for _, s := range p.serving() {
		held = append(held, s.pause())
	}
	changes, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, gen := range held {
		await(changes, gen.idle, func() bool { return gen.changes.Load() == 0 })
	}
}

// await waits until done returns true or ctx ends. It calls done again after each signal.
func await(ctx context.Context, signals <-chan struct{}, done func() bool) {
	for !done() {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
	}
}

// signal puts an element into a channel that holds one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Unpause undoes Pause.
func (p *Plugin) Unpause() {
	p.mu.Lock()
	close(p.paused)
	p.paused = nil
	p.mu.Unlock()
	for _, s := range p.serving() {
		s.unpause()
	}
}

// Movable returns nil if another plugin can resume all sessions of the plugin now. It waits
// at most patience for sessions that are Suspended. An error names the session that cannot be
// moved, and the reason.
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

// movable checks one session for Movable. One without a ticket is never movable. While a session moves it has no connection to
// ZooKeeper, and its deadline does not change. In an outage it needs all the time that is
// left.
func (s *Session) movable(ctx context.Context, p *Plugin) error {
	for {
		left, timeout := s.clock.remaining(), s.Timeout()
		s.mu.Lock()
		gen, changed := s.newest, s.changed
		over := s.err != nil || gen.plugin != p || gen.over.Err() != nil // nothing to move
		state := gen.state
		s.mu.Unlock()
		switch {
		case over:
			return nil
		case !s.resumable && s.server == recipes.ServerKeeper:
			return fmt.Errorf("%w: ClickHouse Keeper does not continue a session on another connection", recipes.ErrUnsupported)
		case !s.resumable:
			return fmt.Errorf("%w: the plugin gave no ticket for it", recipes.ErrUnsupported)
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

// Configs returns the configurations of the sessions that the plugin serves, without
// duplicates.
func (p *Plugin) Configs() (all []recipes.SessionConfig) {
	for _, s := range p.serving() {
		if !slices.ContainsFunc(all, func(c recipes.SessionConfig) bool { return reflect.DeepEqual(c, s.cfg) }) {
			all = append(all, s.cfg)
		}
	}
	return all
}

// DetachSessions makes a paused plugin detach its sessions, until ctx ends. all reports whether
// the plugin has no session left that it would close when it exits. If all is false, the
// caller must kill the process. Otherwise it may end it in any way. A detached session
// continues in the next plugin after ProcessEnded was called.
//
// moved waits until another plugin serves the sessions. If a session was lost before that, it
// returns the reason. If ctx ends first, it returns ctx's error.
func (p *Plugin) DetachSessions(ctx context.Context) (all bool, moved func(context.Context) error) {
	var kept atomic.Bool
	kept.Store(p.openings() > 0) // no session is opened while the plugin is paused
	sessions := slices.DeleteFunc(p.serving(), func(s *Session) bool { return s.clock.contacted().IsZero() })
	var work sync.WaitGroup
	for _, s := range sessions {
		work.Go(func() {
			if !s.detach(ctx) {
				kept.Store(true)
			}
		})
	}
	work.Wait()
	return !kept.Load(), func(ctx context.Context) (err error) {
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
}

func (p *Plugin) openings() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opening
}

func (p *Plugin) serving() []*Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.sessions))
}

func (s *Session) pause() *generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	gen := s.newest
	gen.paused = true
	if s.err == nil && s.serving.Load() == gen {
		s.serve(nil)
	}
	return gen
}

func (s *Session) unpause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest.paused = false
	s.serveReady(s.newest)
}

// serveReady makes gen serve the session if gen is ready and not paused. The caller holds mu.
func (s *Session) serveReady(gen *generation) {
	if s.err == nil && gen.over.Err() == nil && gen.ready && !gen.paused {
		s.serve(gen)
	}
}

// detach makes the plugin detach the session. It reports whether the plugin has nothing left
// to close.
func (s *Session) detach(ctx context.Context) bool {
	s.mu.Lock()
	gen := s.newest
	if s.err != nil {
		s.mu.Unlock()
		return true
	}
	if !s.resumable {
		s.mu.Unlock()
		return false
	}
	gen.detaching = make(chan struct{})
	s.mu.Unlock()
	_, err := s.client.sessions.Detach(gen.plugin.to(ctx), &pb.DetachRequest{Session: s.handle})
	_, answered := wire.Error(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	gen.detached, gen.detachFailed = err == nil, err != nil && !answered
	close(gen.detaching)
	return gen.detached
}

// detaching returns a channel that is closed when Detach has returned. It is nil if Detach
// was not called.
func (s *Session) detaching(gen *generation) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return gen.detaching
}

// wasDetached reports whether the plugin has detached the session. The stream may report that
// (reported) before the answer to Detach arrives. If no answer arrives, the stream counts. The
// plugin is killed in that case.
func (s *Session) wasDetached(gen *generation, reported bool) bool {
	leaving := s.detaching(gen)
	if leaving == nil {
		return false
	}
	select {
	case <-leaving:
	case <-s.over.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gen.detached = gen.detached || reported && gen.detachFailed
	return gen.detached
}

// isLoss reports whether the reason in STATE_LOST says that the session is lost. For a
// detached session the plugin sends no such reason.
func isLoss(why error) bool {
	for _, reason := range []error{recipes.ErrExpired, recipes.ErrDeadline, recipes.ErrClosed, recipes.ErrPluginLost, recipes.ErrAuthFailed, recipes.ErrNotContinued} {
		if errors.Is(why, reason) {
			return true
		}
	}
	return false
}

// isFree reports whether no process serves the session any more and it was not closed, now
// that its stream has ended. It waits for the process to end.
func (s *Session) isFree(gen *generation) bool {
	if !s.wasDetached(gen, false) {
		return gen.plugin.died(s.over)
	}
	select {
	case <-gen.plugin.processEnded.Done():
		return true
	case <-s.over.Done():
		return false
	}
}

// movedFrom waits until a plugin other than p serves the session. It returns the reason if
// the session was lost before.
func (s *Session) movedFrom(ctx context.Context, p *Plugin) error {
	for {
		s.mu.Lock() // serve, which also publishes the state, holds it
		gen, changed := s.serving.Load(), s.changed
		s.mu.Unlock()
		if gen != nil && gen.plugin != p {
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
