package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var (
	// ErrNotUpgraded is returned by Supervisor.Upgrade when it has replaced nothing. The old
	// plugin keeps its sessions. The new one, if it was started, has ended. If it ended
	// while it resumed the sessions, a new process of the old program has resumed them.
	ErrNotUpgraded = errors.New("the plugin was not replaced")

	// ErrLosesSessions is returned by Supervisor.Upgrade, with ErrNotUpgraded, when the
	// upgrade would lose sessions: the new plugin cannot resume them, or could fail to resume
	// them now, for example during an outage. UpgradeConfig.LoseSessions allows the upgrade.
	ErrLosesSessions = errors.New("sessions would be lost")
)

// UpgradeConfig says how to replace a plugin.
type UpgradeConfig struct {
	// Plugin says what to launch, and replaces SupervisorConfig.Plugin. Its MeterProvider
	// gets only the metrics of the calls. The metrics of the recipes still go to the
	// MeterProvider in SupervisorConfig.
	Plugin Config

	// LoseSessions allows an upgrade that ends the sessions. Sessions that can be resumed
	// are resumed in any case. Without LoseSessions, Upgrade fails with ErrLosesSessions
	// unless all of these are true:
	//
	//   - Both plugins have the capability "resume".
	//   - SupervisorConfig.LoseSessions is not set.
	//   - The new plugin reaches ZooKeeper.
	//   - All sessions are Connected, with at least a quarter of their timeout left.
	LoseSessions bool
}

// Bounds of the steps of Upgrade in which no plugin serves the sessions. The sessions'
// deadlines are not extended.
const (
	// pauseTimeout bounds three waits, one after the other: for sessions that are being
	// opened, for changes in flight, and for Suspended sessions to reconnect.
	pauseTimeout = time.Second
	// detachTimeout bounds the old plugin's detaching from its sessions, and its exit.
	detachTimeout = time.Second
)

// Upgrade replaces the running plugin by another, and moves the sessions and what they hold.
// That is safer than replacing the executable and killing the plugin: the old plugin serves
// until the new one has started, and answers the calls in flight first.
//
//  1. Upgrade launches the new plugin and reads its capabilities. If that fails, the error
//     is that of Launch. The new plugin opens and closes a session with each SessionConfig
//     that is in use.
//  2. New calls and calls of Open wait. Upgrade waits, up to a second each, for calls of Open in
//     flight, for changes in flight, and for Suspended sessions to reconnect.
//  3. The old plugin detaches from its sessions: it closes the connections to ZooKeeper, but
//     not the sessions. Then it exits. If it takes longer than a second, it is killed. At no
//     time do two plugins serve a session.
//  4. The new plugin resumes the sessions. They are Suspended from step 2 until then.
//
// Upgrade returns when all sessions are served again. "Resuming" in the package comment lists
// what is not resumed. Calls that did not finish in step 2 are repeated where that is safe,
// and otherwise fail with recipes.ErrUnknownOutcome. If sessions were lost, for example
// because their deadline passed, the error matches recipes.ErrSessionLost and not
// ErrNotUpgraded.
//
// Any error before step 3 matches ErrNotUpgraded, and nothing has changed. If the new plugin
// ends before step 4 is done, the supervisor launches the old program again, which resumes
// the sessions. That error matches ErrNotUpgraded too. ctx bounds steps 1 and 2. If ctx ends
// later, Upgrade returns ctx's error while the upgrade continues in the background. To go
// back, upgrade to the old plugin.
//
// By default, if sessions would be lost, Upgrade returns an error and changes nothing;
// UpgradeConfig lists the conditions. The application sets LoseSessions when it can do
// without its holds. That choice is why Upgrade takes an UpgradeConfig and not a Config.
//
// If the old plugin dies during the upgrade, the new one replaces it at once, or as soon as a
// restart in progress is done. Concurrent upgrades run one after the other.
func (s *Supervisor) Upgrade(ctx context.Context, cfg UpgradeConfig) error {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return notUpgraded(errSupervisorClosed)
	}
	s.upgrading.Add(1)
	s.mu.Unlock()
	defer s.upgrading.Done()

	cfg.Plugin.MeterProvider = telemetry.Shared(cfg.Plugin.MeterProvider)
	u := &upgrade{cfg: cfg, ctx: ctx, answer: make(chan upgraded, 1)}
	if err := s.allows(u, s.Plugin()); err != nil {
		return notUpgraded(err)
	}
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	var err error
	if u.plugin, err = launchFor(starting, cfg.Plugin, s.client); err != nil {
		return notUpgraded(err)
	}
	a := upgraded{err: s.tryPlugin(starting, u), ends: u.plugin}
	if a.err == nil {
		a = s.handOver(u)
	}
	if a.ends != nil {
		err = a.ends.Close(context.WithoutCancel(ctx))
	}
	switch {
	case a.err != nil:
		return notUpgraded(a.err)
	case a.trial != nil:
		return a.trial.result(ctx)
	case err != nil:
		return fmt.Errorf("host: the plugin was replaced: %w", err)
	}
	return nil
}

// tryPlugin checks that the new plugin reaches ZooKeeper, before any session depends on it.
func (s *Supervisor) tryPlugin(ctx context.Context, u *upgrade) error {
	old := s.Plugin()
	if u.cfg.LoseSessions || old == nil || !old.resumes() || !u.plugin.resumes() {
		return nil
	}
	if err := s.movable(ctx, old); err != nil {
		return err
	}
	for _, cfg := range old.link.Configs() {
		session, err := u.plugin.Open(ctx, cfg)
		if err == nil {
			err = session.Close(ctx)
		}
		if err != nil {
			return fmt.Errorf("%w: the new plugin reaches no server: %w", ErrLosesSessions, err)
		}
	}
	return nil
}

func notUpgraded(err error) error { return fmt.Errorf("host: %w: %w", ErrNotUpgraded, err) }

var errSupervisorClosed = fmt.Errorf("%w: the supervisor is closed", recipes.ErrUnavailable)

// movable returns ErrLosesSessions if an upgrade would now lose sessions of p.
func (s *Supervisor) movable(ctx context.Context, p *Plugin) error {
	if err := p.link.Movable(ctx, s.pause); err != nil {
		return fmt.Errorf("%w: %w", ErrLosesSessions, err)
	}
	return nil
}

type upgrade struct {
	ctx    context.Context
	cfg    UpgradeConfig
	plugin *Plugin       // the new one
	answer chan upgraded // buffered, so that run does not wait
}

type upgraded struct {
	err   error   // why nothing was replaced
	ends  *Plugin // to be closed: the old one or the new one
	trial *trial  // nil if no session moves
}

// trial is the time in which a new plugin resumes the sessions of the old one.
type trial struct {
	before Config        // launched again if the new plugin ends
	done   chan struct{} // closed when all sessions were resumed or lost

	mu     sync.Mutex
	over   bool
	failed error // why the new plugin ended during the trial
	lost   error // why sessions were lost
}

func (t *trial) await(moved func(context.Context) error) {
	err := moved(context.Background()) // returns at the latest when Close ends the sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over, t.lost = true, err
	close(t.done)
}

// fail records that the new plugin has ended. It returns false if the trial was over.
func (t *trial) fail(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.failed = fmt.Errorf("the new plugin ended before it had resumed all sessions: %w", err)
	return true
}

// result waits for the end of the trial and returns the error of Upgrade.
func (t *trial) result(ctx context.Context) error {
	select {
	case <-t.done:
	case <-ctx.Done():
		return fmt.Errorf("host: the plugin was replaced: %w", ctx.Err())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.failed != nil:
		return notUpgraded(errors.Join(t.failed, t.lost))
	case t.lost != nil:
		return fmt.Errorf("host: the plugin was replaced: %w", t.lost)
	}
	return nil
}

// handOver passes an upgrade to run and waits for its result.
func (s *Supervisor) handOver(u *upgrade) upgraded {
	select {
	case s.upgrades <- u:
		return <-u.answer
	case <-u.ctx.Done():
		return upgraded{err: u.ctx.Err(), ends: u.plugin}
	case <-s.ctx.Done():
		return upgraded{err: errSupervisorClosed, ends: u.plugin}
	}
}

// allows returns ErrLosesSessions for an upgrade that would lose the sessions of old. old is
// nil while no plugin runs. u.plugin is nil before it was launched.
func (s *Supervisor) allows(u *upgrade, old *Plugin) error {
	switch {
	case u.cfg.LoseSessions:
		return nil
	case s.client == nil && old != nil:
		return fmt.Errorf("%w: SupervisorConfig.LoseSessions is set, or the plugin runs in a debugger", ErrLosesSessions)
	case s.client != nil && old != nil && !old.resumes():
		return fmt.Errorf("%w: the running plugin lacks the capability %q", ErrLosesSessions, "resume")
	case s.client != nil && u.plugin != nil && !u.plugin.resumes():
		return fmt.Errorf("%w: the new plugin lacks the capability %q", ErrLosesSessions, "resume")
	}
	return nil
}

// replace makes an upgrade. It returns the plugin that runs after it: the new one or old.
func (s *Supervisor) replace(old *Plugin, u *upgrade) *Plugin {
	var a upgraded
	var moved func(context.Context) error
	if a.err = s.allows(u, old); a.err == nil && old != nil {
		if old.resumes() && u.plugin.resumes() {
			moved, a.err = s.detachSessions(old, u)
		} else {
			a.ends = old
		}
	}
	if a.err != nil {
		a.ends = u.plugin
		u.answer <- a
		return old
	}
	if moved != nil {
		a.trial = &trial{before: s.cfg.Plugin, done: make(chan struct{})}
	}
	s.trial = a.trial
	s.cfg.Plugin = u.cfg.Plugin
	s.log(old, u.plugin)
	s.mu.Lock()
	s.set(u.plugin, nil)
	s.mu.Unlock()
	if t := a.trial; t != nil {
		s.upgrading.Go(func() { t.await(moved) }) // Upgrade has not returned, so the count is not 0
	}
	u.answer <- a
	s.call(Change{Plugin: u.plugin})
	return u.plugin
}

// detachSessions makes old detach from its sessions, and waits for its exit. On error nothing has
// changed.
func (s *Supervisor) detachSessions(old *Plugin, u *upgrade) (moved func(context.Context) error, err error) {
	old.link.Pause(u.ctx, s.pause)
	select {
	case <-u.plugin.peer.gone():
		err = fmt.Errorf("the new plugin has ended: %s", u.plugin.peer.ending())
	default:
	}
	switch {
	case err != nil:
	case s.ctx.Err() != nil: // Close has ended the sessions, and Pause with them
		err = errSupervisorClosed
	case u.ctx.Err() != nil:
		err = u.ctx.Err()
	case !u.cfg.LoseSessions:
		err = s.movable(u.ctx, old)
	}
	if err != nil {
		old.link.Unpause()
		return nil, err
	}
	bound, cancel := context.WithTimeout(context.Background(), detachTimeout)
	defer cancel()
	all, moved := old.link.DetachSessions(bound)
	if all {
		old.peer.stop(bound)
	} else { // stop would make it close the sessions that it has not detached from
		old.peer.(*launched).kill()
	}
	<-old.Exited()
	return moved, nil
}

// log logs the replacement, and the capabilities of old that the new plugin lacks. Grants of
// recipes that it lacks are lost.
func (s *Supervisor) log(old, now *Plugin) {
	log := s.cfg.Plugin.Logger
	if log == nil {
		return
	}
	log.Info("plugin was replaced", "pid", now.PID())
	if old == nil {
		return
	}
	less := slices.DeleteFunc(slices.Clone(old.can), func(c string) bool { return slices.Contains(now.can, c) })
	if len(less) > 0 {
		log.Warn("the new plugin lacks capabilities of the old one", "capabilities", less)
	}
}
