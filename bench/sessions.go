package bench

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/internal/sessions"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type opened struct {
	sessions []recipes.Client
	kill     func(ctx context.Context, session int) error
	reopen   func(ctx context.Context, session int) (recipes.Client, error)
	relays   []*relay.Relay
	delay    *relay.Delay // of the relays; nil without one
}

// open opens a session for each contender. On error it leaves none open.
func (e Experiment) open(ctx context.Context, t Trial) (opened, error) {
	all := opened{}
	if t.Delay > 0 {
		all.delay = relay.NewDelay(t.Delay)
	}
	n := t.Contenders * e.lines(t)
	configs := func(int) recipes.SessionConfig { return e.Session }
	switch {
	case t.Workload == load.Failover, t.Workload == load.Timeline && e.cutsOff():
		if err := all.relay(e.Session.Servers, n); err != nil {
			all.close(ctx)
			return opened{}, err
		}
		cut := (*relay.Relay).Cut
		if t.Workload == load.Timeline {
			cut = (*relay.Relay).Refuse // reopen restores it
		}
		all.kill = func(_ context.Context, i int) error {
			cut(all.relays[i])
			return nil
		}
		configs = func(i int) recipes.SessionConfig {
			cfg := e.Session
			cfg.Servers = from(i, cfg.Servers) // relay.Through expects the first server's name in the certificate
			return relay.Through(cfg, all.relays[i].Addr())
		}
	case t.Delay > 0:
		cfg, err := all.through(e.Session)
		if err != nil {
			all.close(ctx)
			return opened{}, err
		}
		configs = func(int) recipes.SessionConfig { return cfg }
	}
	all.reopen = func(ctx context.Context, i int) (recipes.Client, error) {
		sessions.Close(ctx, all.sessions[i:i+1])
		if all.kill != nil {
			all.relays[i].Restore()
		}
		s, err := t.Transport.Open(ctx, configs(i))
		all.sessions[i] = s // nil after an error
		return s, err
	}
	defer collectLess(n)()
	var err error
	if all.sessions, err = sessions.Open(ctx, t.Transport.Open, configs, n, e.counter("open", n)); err != nil {
		all.close(ctx)
		return opened{}, err
	}
	return all, nil
}

func (e Experiment) cutsOff() bool {
	return slices.ContainsFunc(e.Faults, func(f timeline.Fault) bool { return !f.Server() })
}

// relay starts a relay for each session, by which the session can be cut off. Each relay
// prefers another server, so that sessions are spread over the servers as without relays.
func (o *opened) relay(servers []string, n int) error {
	for i := range n {
		r, err := relay.Listen(from(i, servers), o.delay)
		if err != nil {
			return err
		}
		o.relays = append(o.relays, r)
	}
	return nil
}

func (o *opened) through(cfg recipes.SessionConfig) (recipes.SessionConfig, error) {
	var addrs []string
	for _, server := range cfg.Servers {
		r, err := relay.Listen([]string{server}, o.delay)
		if err != nil {
			return cfg, err
		}
		o.relays = append(o.relays, r)
		addrs = append(addrs, r.Addr())
	}
	return relay.Through(cfg, addrs...), nil
}

// from returns all servers, rotated so that the i-th comes first; i wraps around.
func from(i int, servers []string) []string {
	i %= len(servers)
	return slices.Concat(servers[i:], servers[:i])
}

// close closes the sessions first, because their last requests go through the relays.
func (o *opened) close(ctx context.Context) {
	sessions.Close(ctx, o.sessions)
	for _, r := range o.relays {
		r.Cut()
	}
	if o.delay != nil {
		o.delay.Close()
	}
}

const aftermath = time.Second

func (e Experiment) counter(what string, of int) func() {
	var done atomic.Int64
	return func() {
		if n := int(done.Add(1)); e.Progress != nil && n <= of {
			e.Progress(what, n, of)
		}
	}
}
