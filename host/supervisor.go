package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// SupervisorConfig says how to keep a plugin running. The zero value is ready to use.
type SupervisorConfig struct {
	// Plugin says what to launch, at first and after each crash. Each launch finds the
	// plugin again, and checks its permissions and checksum.
	Plugin Config

	// MinBackoff is the wait before the first restart. The wait doubles with each further
	// restart, up to MaxBackoff. It is MinBackoff again after a plugin has run for
	// MaxBackoff. Each wait is randomly up to 20 % shorter or longer, so that the plugins
	// of many hosts do not start at the same time. 0 means 100 milliseconds and
	// 30 seconds.
	MinBackoff, MaxBackoff time.Duration

	// LoseSessions makes sessions end with their plugin, with recipes.ErrPluginLost.
	//
	// Without it they survive the plugin, if the plugins have the capability "resume".
	// When the process is killed or crashes, its sessions are Suspended. The next plugin
	// resumes them, their holds and their waiters. A session that is not resumed by its
	// deadline is lost. "Resuming" in the package comment lists what is resumed. If the
	// plugin ran for ten times MinBackoff, the first restart does not wait.
	LoseSessions bool

	// Changed, if not nil, is called for each Change, in order. The goroutine that calls
	// it also restarts the plugin, so nothing is restarted until Changed returns. Changed
	// must not call Close or Upgrade, which wait for it. It must not call Open or wait for
	// a session while no plugin runs: those calls wait for the next plugin. The supervisor
	// logs changes too.
	Changed func(Change)
}

// Change is a start, a failed start or an end of a supervised plugin.
type Change struct {
	// Err says why the plugin ended, or why it could not be started. It is nil
	// when Plugin runs.
	Err error
	// Plugin is the plugin that was started, or nil.
	Plugin *Plugin
	// Next is the wait before the next start, if Err is not nil.
	Next time.Duration
}

// Supervisor keeps a plugin running: it launches the plugin again after a crash.
//
// When the plugin dies, the next one resumes its sessions and what they hold: see "Resuming"
// in the package comment. A session that cannot be resumed is lost, with all its grants. Only
// the application knows what that loss means, so the supervisor never replaces the session.
// The application opens another one with [Supervisor.Open]. [Supervisor.Upgrade] replaces a
// running plugin.
//
// The methods may be called from several goroutines.
type Supervisor struct {
	cfg    SupervisorConfig
	client *link.Client    // of all plugins; nil if each has its own
	ctx    context.Context // cancelled by Close
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned

	pause     time.Duration  // pauseTimeout, except in tests
	upgrades  chan *upgrade  // to run, which owns the new plugin until it has answered
	trial     *trial         // of the latest upgrade; only run uses it
	upgrading sync.WaitGroup // calls of Upgrade; mu protects Add, which needs ctx alive

	mu      sync.Mutex
	plugin  *Plugin       // nil while none runs
	failure error         // why none runs
	change  chan struct{} // closed and replaced when plugin or failure changes
}

func (c SupervisorConfig) defaults() SupervisorConfig {
	c.MinBackoff = cmp.Or(c.MinBackoff, 100*time.Millisecond)
	c.MaxBackoff = max(cmp.Or(c.MaxBackoff, 30*time.Second), c.MinBackoff)
	c.Plugin.MeterProvider = telemetry.Shared(c.Plugin.MeterProvider)
	return c
}

// Supervise launches a plugin and keeps it running until Close. ctx bounds only the first
// start. If that fails, Supervise returns the error of Launch and leaves nothing running.
func Supervise(ctx context.Context, cfg SupervisorConfig) (*Supervisor, error) {
	if cfg.MinBackoff < 0 || cfg.MaxBackoff < 0 {
		return nil, errors.New("host: SupervisorConfig: MinBackoff and MaxBackoff must not be negative")
	}
	cfg = cfg.defaults()
	s := &Supervisor{cfg: cfg, pause: pauseTimeout, change: make(chan struct{}), done: make(chan struct{}), upgrades: make(chan *upgrade)}
	if !cfg.LoseSessions && !debugged() {
		var err error
		if s.client, err = newClient(cfg.Plugin.MeterProvider); err != nil {
			return nil, err
		}
	}
	p, err := launchFor(ctx, cfg.Plugin, s.client)
	if err != nil {
		return nil, err
	}
	s.plugin = p
	s.use(p)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.run(p) // Close waits for it
	return s, nil
}

// Plugin returns the running plugin, or nil while none runs. It can end at any time. Do not
// close it.
func (s *Supervisor) Plugin() *Plugin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plugin
}

// Open opens a session through the running plugin. While none runs, Open waits for the next
// one. It is a recipes.Opener. If ctx ends before a plugin runs, the error matches
// recipes.ErrUnavailable and says why none runs. A ctx without a deadline is bounded by
// recipes.DefaultOpenTimeout.
func (s *Supervisor) Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
		defer cancel()
	}
	for {
		p, err := s.running(ctx)
		if err != nil {
			return nil, err
		}
		session, err := p.Open(ctx, cfg)
		if !errors.Is(err, recipes.ErrPluginLost) {
			return session, err
		}
		// The plugin and the session died before the plugin answered. Wait until the plugin has
		// been cleaned up. A plugin that does not end has ended this session only, for example
		// because this process did not run for the session timeout.
		lives := time.NewTimer(killTimeout)
		select {
		case <-p.Exited():
			s.gone(p, err)
		case <-lives.C:
		case <-ctx.Done():
		}
		lives.Stop()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

func (s *Supervisor) running(ctx context.Context) (*Plugin, error) {
	for {
		s.mu.Lock()
		p, failure, change := s.plugin, s.failure, s.change
		s.mu.Unlock()
		switch {
		case s.ctx.Err() != nil:
			return nil, fmt.Errorf("host: %w: the supervisor is closed", recipes.ErrUnavailable)
		case p != nil:
			return p, nil
		}
		select {
		case <-change:
		case <-s.ctx.Done():
		case <-ctx.Done():
			return nil, fmt.Errorf("host: %w: the plugin does not run (%w): %w", recipes.ErrUnavailable, failure, ctx.Err())
		}
	}
}

// gone records that p has ended. Open and run both call it.
func (s *Supervisor) gone(p *Plugin, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plugin == p {
		s.set(nil, why)
	}
}

// set changes the running plugin. The caller holds mu.
func (s *Supervisor) set(p *Plugin, failure error) {
	s.plugin, s.failure = p, failure
	if p != nil {
		s.use(p)
	}
	close(s.change)
	s.change = make(chan struct{})
}

// use makes the shared client open and resume sessions through p.
func (s *Supervisor) use(p *Plugin) {
	if s.client != nil {
		s.client.Use(p.link, p.resumes())
	}
}

// Close ends the supervision, and closes the plugin with Plugin.Close. It may be called
// again. A waiting Open returns an error. An Upgrade that has not ended the old plugin yet also
// returns one, and Close waits for it.
func (s *Supervisor) Close(ctx context.Context) error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	if s.client != nil {
		s.client.Fail(errClosedByHost)
		defer s.client.Close()
	}
	<-s.done // run abandons a start, which takes a bounded time
	s.upgrading.Wait()
	if p := s.Plugin(); p != nil {
		return p.Close(ctx)
	}
	return nil
}

// run restarts and upgrades the plugin until Close.
func (s *Supervisor) run(p *Plugin) {
	defer close(s.done)
	b := &backoff{least: s.cfg.MinBackoff, most: s.cfg.MaxBackoff}
	since := time.Now()
	for p != nil {
		select {
		case <-p.Exited():
		case u := <-s.upgrades:
			if next := s.replace(p, u); next != p {
				p, since = next, time.Now()
			}
			continue
		case <-s.ctx.Done():
			return
		}
		b.ran(time.Since(since))
		err := fmt.Errorf("host: %w: %s", recipes.ErrPluginLost, p.peer.ending())
		s.gone(p, err)
		p = s.restart(b, err, s.fallBack(err) || s.client != nil && time.Since(since) >= 10*s.cfg.MinBackoff)
		since = time.Now()
	}
}

// fallBack makes the next start launch the old program again, if the new plugin of an upgrade
// has ended before it resumed all sessions. err says why it ended.
func (s *Supervisor) fallBack(err error) bool {
	t := s.trial
	s.trial = nil
	if t == nil || !t.fail(err) {
		return false
	}
	s.cfg.Plugin = t.before
	return true
}

// restart starts plugins until one runs, and returns it, or nil after Close. If atOnce is
// true, the first attempt does not wait.
func (s *Supervisor) restart(b *backoff, err error, atOnce bool) *Plugin {
	for ; ; atOnce = false {
		next := time.Duration(0)
		if !atOnce {
			next = b.next()
		}
		s.report(Change{Err: err, Next: next})
		p, waited := s.backOff(next)
		if p != nil || !waited {
			return p
		}
		p, err = launchFor(s.ctx, s.cfg.Plugin, s.client)
		s.mu.Lock()
		s.set(p, err)
		s.mu.Unlock()
		if err == nil {
			s.report(Change{Plugin: p})
			return p
		}
	}
}

// backOff waits for d before a restart. It returns early with the plugin of an upgrade, or with
// nil after Close. waited reports that d has passed.
func (s *Supervisor) backOff(d time.Duration) (p *Plugin, waited bool) {
	wait := time.NewTimer(d)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
			return nil, true
		case u := <-s.upgrades:
			if p := s.replace(nil, u); p != nil {
				return p, false
			}
		case <-s.ctx.Done():
			return nil, false
		}
	}
}

// report logs a change and passes it to SupervisorConfig.Changed.
func (s *Supervisor) report(c Change) {
	if s.ctx.Err() != nil {
		return
	}
	if log := s.cfg.Plugin.Logger; log != nil && c.Err != nil {
		what := "plugin does not run; its sessions are lost"
		if s.client != nil {
			what = "plugin does not run; its sessions wait for the next one"
		}
		log.Warn(what, "error", c.Err, "restart_in", c.Next)
	} else if log != nil {
		log.Warn("plugin was started again", "pid", c.Plugin.PID())
	}
	s.call(c)
}

func (s *Supervisor) call(c Change) {
	if s.cfg.Changed != nil {
		s.cfg.Changed(c)
	}
}

// backoff computes the waits between attempts: exponential, from least to most.
type backoff struct{ least, most, last time.Duration }

// next doubles the wait and returns it with a jitter of up to 20 % either way.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.least), b.most)
	return time.Duration(float64(b.last) * (0.8 + 0.4*rand.Float64()))
}

// ran resets the wait to least if the plugin ran for at least most.
func (b *backoff) ran(d time.Duration) {
	if d >= b.most {
		b.last = 0
	}
}
