package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Relaunch starts the next plugin after one that was launched with Config.KeepSessions and has
// ended, and has it take up the sessions. The package comment says under "Resuming" what
// stands and what does not. A session goes on by itself soon after Relaunch has returned; its
// Events tell. Its deadline counts on meanwhile.
//
// ctx and cfg mean what they mean to Launch. cfg's MeterProvider gets the metrics of calls
// only: those of the recipes stay where they are. The next plugin keeps sessions too, and the
// sessions are its own from now on: Close it, or relaunch it when it has ended.
//
// If the next plugin lacks the capability "resume", the sessions are lost. If the start fails,
// the error is that of Launch, and the sessions wait on: Relaunch may be called again. After
// Close the error matches recipes.ErrClosed. It is another one while the plugin runs, after
// another Relaunch, and without KeepSessions. Then nothing has changed.
func (p *Plugin) Relaunch(ctx context.Context, cfg Config) (*Plugin, error) {
	select {
	case <-p.exited:
	default:
		return nil, errors.New("host: Relaunch: the plugin still runs; wait for Exited first")
	}
	if err := p.relaunchable(); err != nil {
		return nil, err
	}
	next, err := launchFor(ctx, cfg, p.client)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	err = p.mayRelaunch()
	if err == nil { // nobody else has it now
		p.keeps, next.keeps = false, true
		p.client.Use(next.link, next.resumes())
	}
	p.mu.Unlock()
	if err != nil {
		_ = next.Close(context.WithoutCancel(ctx)) // it serves nothing yet
		return nil, err
	}
	return next, nil
}

func (p *Plugin) relaunchable() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mayRelaunch()
}

// mayRelaunch needs mu.
func (p *Plugin) mayRelaunch() error {
	switch {
	case p.closed:
		return fmt.Errorf("host: Relaunch: %w", recipes.ErrClosed)
	case !p.keeps:
		return errors.New("host: Relaunch: the plugin keeps no sessions: Config.KeepSessions was not set, or another Relaunch has them")
	}
	return nil
}

// disown notes that the plugin is closed. It reports whether the sessions that outlive it end
// with it.
func (p *Plugin) disown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.keeps
}
