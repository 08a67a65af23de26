package bench

import (
	"context"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// opened is the sessions of a trial, and how to kill one of them.
type opened struct {
	sessions []recipes.Client
	kill     func(ctx context.Context, session int) error
	cutOff   bool // kill leaves the session to its own clock
	relays   []*relay.Relay
	delay    *relay.Delay // of the relays; nil: none
}

// open opens a session for each contender, or none.
func (e Experiment) open(ctx context.Context, t Trial) (opened, error) {
	all := opened{}
	if t.Delay > 0 {
		all.delay = relay.NewDelay(t.Delay)
	}
	n := t.Contenders * e.lines(t)
	configs := func(int) recipes.SessionConfig { return e.config(t) }
	switch {
	case t.Workload == load.Failover && e.Kill == nil:
		if err := all.relay(e.Session.Servers, n); err != nil {
			all.close(ctx)
			return opened{}, err
		}
		configs = func(i int) recipes.SessionConfig {
			cfg := e.config(t)
			cfg.Servers = from(i, cfg.Servers) // the name in the certificate is that of the first
			return relay.Through(cfg, all.relays[i].Addr())
		}
	case t.Delay > 0:
		cfg, err := all.through(e.config(t))
		if err != nil {
			all.close(ctx)
			return opened{}, err
		}
		configs = func(int) recipes.SessionConfig { return cfg }
	}
	if t.Workload == load.Failover && e.Kill != nil {
		all.kill = func(ctx context.Context, i int) error { return e.Kill(ctx, all.sessions[i]) }
	}
	var err error
	if all.sessions, err = open(ctx, t.Transport.Open, configs, n, e.counter("open", n)); err != nil {
		all.close(ctx)
		return opened{}, err
	}
	return all, nil
}

// relay puts a relay before each session, and has its cutting be the kill. Each
// prefers another server than the one before it: sessions without relays are spread
// over the servers too.
func (o *opened) relay(servers []string, n int) error {
	for i := range n {
		r, err := relay.Listen(from(i, servers), o.delay)
		if err != nil {
			return err
		}
		o.relays = append(o.relays, r)
	}
	relays := o.relays
	o.cutOff = true
	o.kill = func(_ context.Context, i int) error {
		relays[i].Cut()
		return nil
	}
	return nil
}

// through puts a relay before each server, and returns the configuration of a session
// that goes through them.
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

// from returns the servers beginning with the i-th, round and round.
func from(i int, servers []string) []string {
	i %= len(servers)
	return slices.Concat(servers[i:], servers[:i])
}

// close closes the sessions first: what they send on closing goes through the relays.
func (o *opened) close(ctx context.Context) {
	closeAll(ctx, o.sessions)
	for _, r := range o.relays {
		r.Cut()
	}
	if o.delay != nil {
		o.delay.Close()
	}
}

// aftermath is how long after a failover the survivors' traffic is counted.
const aftermath = time.Second
