package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Defaults of [SupervisorConfig].
const (
	DefaultMinBackoff = 100 * time.Millisecond
	DefaultMaxBackoff = 30 * time.Second
)

// SupervisorConfig says how to keep a plugin running. The zero value is good.
type SupervisorConfig struct {
	// Plugin says what to launch, at first and after each crash. Each time the
	// plugin is looked for, and its permissions and checksum are checked.
	Plugin Config

	// MinBackoff is the wait before the first restart. It doubles with each
	// further restart, up to MaxBackoff, and is MinBackoff again when a plugin has
	// run for MaxBackoff. Each wait is randomly up to 20 % shorter or longer, so
	// that the plugins of many hosts do not start at once. 0 means
	// DefaultMinBackoff and DefaultMaxBackoff.
	MinBackoff, MaxBackoff time.Duration

	// LoseSessions has sessions end with their plugin, with recipes.ErrPluginLost.
	//
	// Otherwise they outlive it, if plugins have the capability "resume". When the
	// process is killed or crashes, its sessions are Suspended. The next plugin takes them
	// up, with what they hold and those that wait, before their deadline, or they are lost
	// then. What is resumed, and what is not, "Resuming" in the package comment says.
	// The first restart is at once, if the plugin has run for ten times MinBackoff.
	LoseSessions bool

	// Changed, if not nil, is called for each Change, in order. The goroutine
	// that calls it restarts the plugin, so that nothing is restarted until it
	// returns. It must not call Close or Upgrade, which wait for it, nor Open while
	// no plugin runs. It must not wait for a session either: calls wait for the next
	// plugin. Changes are logged too.
	Changed func(Change)
}

// Change is an end, a failed start or a start of the plugin that a Supervisor saw.
type Change struct {
	// Err says why the plugin ended, or why it could not be started. It is nil
	// when Plugin runs.
	Err error
	// Plugin is the one that was started, or nil.
	Plugin *Plugin
	// Next is the wait before the next start, if Err is not nil.
	Next time.Duration
}

// Supervisor keeps a plugin running: it launches it again after a crash.
//
// When the plugin dies, its sessions go on in the next one, with what they hold: see
// "Resuming" in the package comment. A session that cannot go on is lost, and what it
// held is gone. Only the application knows what that means for it. The supervisor never
// replaces such a session. The application opens another one with [Supervisor.Open].
// [Supervisor.Upgrade] replaces a plugin that runs.
//
// The methods may be called from several goroutines.
type Supervisor struct {
	cfg    SupervisorConfig
	client *client.Client  // of all plugins; nil if each has its own
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned

	upgrades  chan *upgrade  // to run, which then owns the new plugin until it answers
	trial     *trial         // of the latest upgrade; run's
	upgrading sync.WaitGroup // calls of Upgrade: added to under mu while ctx lasts

	mu      sync.Mutex
	plugin  *Plugin       // nil while there is none
	failure error         // why
	change  chan struct{} // closed, and replaced, when they change
}

// Supervise launches a plugin and keeps it running until Close. ctx bounds the first
// start only. If that fails, the error is that of Launch, and nothing runs.
func Supervise(ctx context.Context, cfg SupervisorConfig) (*Supervisor, error) {
	if cfg.MinBackoff < 0 || cfg.MaxBackoff < 0 {
		return nil, errors.New("host: SupervisorConfig: MinBackoff and MaxBackoff must not be negative")
	}
	if cfg.MinBackoff == 0 {
		cfg.MinBackoff = DefaultMinBackoff
	}
	if cfg.MaxBackoff == 0 {
		cfg.MaxBackoff = DefaultMaxBackoff
	}
	cfg.MaxBackoff = max(cfg.MaxBackoff, cfg.MinBackoff)
	s := &Supervisor{cfg: cfg, change: make(chan struct{}), done: make(chan struct{}), upgrades: make(chan *upgrade)}
	if !cfg.LoseSessions && !debugged() {
		several, err := cfg.Plugin.unconnected()
		if err != nil {
			return nil, err
		}
		s.client = several
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

// Plugin returns the plugin that runs now, or nil while none runs. It may end at any
// time. Do not close it.
func (s *Supervisor) Plugin() *Plugin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plugin
}

// Open opens a session through the plugin that runs. While none runs, it waits for
// the next one. It is a recipes.Opener. If ctx ends before a plugin runs, the error
// matches recipes.ErrUnavailable and says why none does. Without a deadline of ctx that
// is after recipes.DefaultOpenTimeout.
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
		// The plugin died before it told of the session, which died with it. Wait
		// until its end is known here too.
		select {
		case <-p.Exited():
		case <-ctx.Done():
			return nil, err
		}
		s.gone(p, err)
	}
}

// running waits for a plugin.
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

// gone notes that p has ended. Open and run both call it.
func (s *Supervisor) gone(p *Plugin, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plugin == p {
		s.set(nil, why)
	}
}

// set needs mu.
func (s *Supervisor) set(p *Plugin, failure error) {
	s.plugin, s.failure = p, failure
	if p != nil {
		s.use(p)
	}
	close(s.change)
	s.change = make(chan struct{})
}

// use has sessions opened and resumed by p.
func (s *Supervisor) use(p *Plugin) {
	if s.client != nil {
		s.client.Use(p.link, p.resumes())
	}
}

// Close ends the supervision, and the plugin as Plugin.Close does. It may be called
// again. An Open that waits returns with an error, and so does an Upgrade that has not
// ended the old plugin. Close waits for that.
func (s *Supervisor) Close(ctx context.Context) error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	if s.client != nil {
		s.client.Fail(errClosedByHost)
		defer s.client.Close()
	}
	<-s.done // a start that is under way is given up, which is bounded
	s.upgrading.Wait()
	if p := s.Plugin(); p != nil {
		return p.Close(ctx)
	}
	return nil
}
