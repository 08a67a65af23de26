package host

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

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
		p, waited := s.rest(next)
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

// rest waits for d before a restart. It returns early with the plugin of an upgrade, or with
// nil after Close. waited reports that d has passed.
func (s *Supervisor) rest(d time.Duration) (p *Plugin, waited bool) {
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
	if s.cfg.Changed != nil && s.ctx.Err() == nil {
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
