package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

var (
	// ErrNotUpgraded is returned by Supervisor.Upgrade when it has replaced nothing. The
	// plugin that ran goes on with its sessions. The new one, if it was started, has ended.
	// If it ended while it resumed the sessions, another process of the program that ran
	// before has them.
	ErrNotUpgraded = errors.New("the plugin was not replaced")

	// ErrLosesSessions is returned by Supervisor.Upgrade, with ErrNotUpgraded, when the
	// sessions cannot go on in the new plugin, or may not now: during an outage for example.
	// UpgradeConfig.LoseSessions allows that.
	ErrLosesSessions = errors.New("sessions would be lost")
)

// UpgradeConfig says what takes the place of a plugin.
type UpgradeConfig struct {
	// Plugin says what to launch, as SupervisorConfig.Plugin does, from now on. Its
	// MeterProvider gets the metrics of calls only: those of the recipes stay where they
	// are.
	Plugin Config

	// LoseSessions allows an upgrade that ends the sessions. Without it, Upgrade fails with
	// ErrLosesSessions unless both plugins have the capability "resume",
	// SupervisorConfig.LoseSessions is not set, the new plugin reaches ZooKeeper, and all
	// sessions are Connected. Where the sessions can go on, they do all the same.
	LoseSessions bool
}

// Steps of Upgrade in which no session has a plugin. The deadlines of the sessions count on
// meanwhile.
const (
	// pauseTimeout bounds the wait for sessions that are being opened, and that for
	// changes that are under way.
	pauseTimeout = time.Second
	// letGoTimeout bounds the old plugin's letting go of its sessions, and its end.
	letGoTimeout = time.Second
)

// Upgrade puts another plugin in the place of the one that runs, and moves the sessions
// with what they hold. It is safer than to replace the executable and kill the plugin. The
// old plugin goes on until the new one is known to start. It first answers what is under way.
//
//  1. The new plugin is launched and asked what it can do. If that fails, the error is that
//     of Launch. It opens and closes a session with each SessionConfig that is in use.
//  2. New calls wait. So do calls of Open. Calls that change something have a second to
//     return, and so have calls of Open that are under way, and sessions that are Suspended.
//  3. The old plugin lets go of its sessions: it closes the connections to ZooKeeper, and not
//     the sessions. Then it is ended and waited for. What does not do this within a second is
//     killed. At no time do two plugins serve a session.
//  4. The new plugin resumes the sessions. They are Suspended from step 2 until then.
//
// Upgrade returns when all sessions are served again. The package comment says under
// "Resuming" what is not resumed. Calls that were not finished in step 2 are repeated where
// that is safe, and else fail with recipes.ErrUnknownOutcome. If sessions
// were lost, because their deadline passed for example, the error matches
// recipes.ErrSessionLost and not ErrNotUpgraded.
//
// Any error before step 3 matches ErrNotUpgraded, and nothing has changed. If the new plugin
// ends before step 4 is done, the program that ran before is started again, and resumes the
// sessions. That error matches ErrNotUpgraded too. ctx bounds the steps 1 and 2. From then on the upgrade goes on also if ctx ends: Upgrade returns ctx's
// error, and the new plugin serves. To go back, upgrade to the old one.
//
// Upgrade says that sessions would be lost before it does anything: see UpgradeConfig. An
// operator who allows that has chosen the moment. Without being asked, no upgrade should
// cost what the application holds. That is why the configuration is not a mere Config.
//
// If the plugin dies meanwhile, the new one takes its place at once, or as soon as a restart
// that is under way has ended. Of several upgrades at a time one is made after the other.
func (s *Supervisor) Upgrade(ctx context.Context, cfg UpgradeConfig) error {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return notUpgraded(errSupervisorClosed)
	}
	s.upgrading.Add(1)
	s.mu.Unlock()
	defer s.upgrading.Done()

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
	a := upgraded{err: s.tries(starting, u), ends: u.plugin}
	if a.err == nil {
		a = s.hand(u)
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

// tries has the new plugin show that it reaches ZooKeeper, before any session depends on it.
func (s *Supervisor) tries(ctx context.Context, u *upgrade) error {
	old := s.Plugin()
	if u.cfg.LoseSessions || old == nil || !old.resumes() || !u.plugin.resumes() {
		return nil
	}
	if err := movable(ctx, old); err != nil {
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

// movable fails if sessions of p would be lost in an upgrade now.
func movable(ctx context.Context, p *Plugin) error {
	if err := p.link.Movable(ctx, pauseTimeout); err != nil {
		return fmt.Errorf("%w: %w", ErrLosesSessions, err)
	}
	return nil
}

// upgrade is what run is asked for.
type upgrade struct {
	ctx    context.Context
	cfg    UpgradeConfig
	plugin *Plugin       // the new one
	answer chan upgraded // holds one
}

// upgraded is what has become of it.
type upgraded struct {
	err   error   // why nothing was replaced
	ends  *Plugin // that is to be closed: the old one, or the new one
	trial *trial  // nil if no session moves
}

// trial is the time in which a new plugin resumes the sessions of the one before.
type trial struct {
	before Config        // is started again if the new one ends
	done   chan struct{} // closed when no session is left to be resumed

	mu     sync.Mutex
	over   bool
	failed error // the new plugin has ended before
	lost   error // why sessions were lost
}

func (t *trial) wait(moved func(context.Context) error) {
	err := moved(context.Background()) // Close ends the sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over, t.lost = true, err
	close(t.done)
}

// fail notes that the new plugin has ended. It reports false if the trial was over.
func (t *trial) fail(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.failed = fmt.Errorf("the new one has ended before it had all sessions: %w", err)
	return true
}

// result waits for the end of the trial.
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

// hand has run make an upgrade.
func (s *Supervisor) hand(u *upgrade) upgraded {
	select {
	case s.upgrades <- u:
		return <-u.answer
	case <-u.ctx.Done():
		return upgraded{err: u.ctx.Err(), ends: u.plugin}
	case <-s.ctx.Done():
		return upgraded{err: errSupervisorClosed, ends: u.plugin}
	}
}

// allows refuses an upgrade that would lose the sessions of old, which is nil while no
// plugin runs. The new plugin may not be known yet.
func (s *Supervisor) allows(u *upgrade, old *Plugin) error {
	switch {
	case u.cfg.LoseSessions:
		return nil
	case s.client == nil && old != nil:
		return fmt.Errorf("%w: SupervisorConfig.LoseSessions is set, or the plugin runs in a debugger", ErrLosesSessions)
	case s.client != nil && old != nil && !old.resumes():
		return fmt.Errorf("%w: the plugin that runs lacks the capability %q", ErrLosesSessions, "resume")
	case s.client != nil && u.plugin != nil && !u.plugin.resumes():
		return fmt.Errorf("%w: the new plugin lacks the capability %q", ErrLosesSessions, "resume")
	}
	return nil
}

// replace makes an upgrade. It returns the plugin that runs after it: the new one, or old.
func (s *Supervisor) replace(old *Plugin, u *upgrade) *Plugin {
	var a upgraded
	var moved func(context.Context) error
	if a.err = s.allows(u, old); a.err == nil && old != nil {
		if old.resumes() && u.plugin.resumes() {
			moved, a.err = s.vacate(old, u)
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
		s.upgrading.Go(func() { t.wait(moved) }) // the call of Upgrade is counted yet
	}
	u.answer <- a
	s.call(Change{Plugin: u.plugin})
	return u.plugin
}

// vacate has old let go of its sessions, and waits for its end. If it fails, nothing has
// changed.
func (s *Supervisor) vacate(old *Plugin, u *upgrade) (moved func(context.Context) error, err error) {
	ctx, cancel := context.WithCancel(u.ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	old.link.Pause(ctx, pauseTimeout)
	select {
	case <-u.plugin.other.gone():
		err = fmt.Errorf("the new one has ended: %s", u.plugin.other.ending())
	case <-s.ctx.Done():
		err = errSupervisorClosed
	case <-ctx.Done():
		err = ctx.Err()
	default:
		if !u.cfg.LoseSessions {
			err = movable(ctx, old)
		}
	}
	if err != nil {
		old.link.GoOn()
		return nil, err
	}
	bound, cancel := context.WithTimeout(context.Background(), letGoTimeout)
	defer cancel()
	all, moved := old.link.LetGo(bound)
	if all {
		old.other.stop(bound)
	} else { // it would close what it has not let go of
		old.other.(*launched).kill()
	}
	<-old.Exited()
	return moved, nil
}

// log notes what has replaced what, and what the new plugin cannot do that old could: what
// sessions have of that is lost.
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
