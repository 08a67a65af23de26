package main

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Names of the transports, for -via.
const (
	direct    = "direct"
	inprocess = "inprocess"
	byRelay   = "relay"
	plugin    = "plugin"
)

// launcher makes a transport ready to open sessions of that configuration. What
// it starts is ended by the cleanup; say tells the user what is worth knowing.
type launcher func(ctx context.Context, s settings, cfg recipes.SessionConfig, end *cleanup, say say) (bench.Transport, error)

// say writes a line for people.
type say func(format string, args ...any)

// transports are the ways to reach the recipes.
var transports = map[string]launcher{
	direct:    launchDirect,
	inprocess: launchInProcess,
	byRelay:   launchRelay,
	plugin:    launchPlugin,
}

// launch makes the transports of the flags ready, and opens a session over each:
// what cannot work fails before anything is measured.
func (c command) launch(ctx context.Context, s settings, cfg recipes.SessionConfig, end *cleanup) ([]bench.Transport, error) {
	var all []bench.Transport
	for _, name := range s.via.values {
		t, err := c.transports[name](ctx, s, cfg, end, c.say)
		if err != nil {
			return nil, fmt.Errorf("prepare -via %s: %w", name, err)
		}
		t.Name = name
		if err := try(ctx, t.Open, cfg); err != nil {
			return nil, fmt.Errorf("try -via %s: %w", name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// try opens and closes a session.
func try(ctx context.Context, open recipes.Opener, cfg recipes.SessionConfig) error {
	session, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	return session.Close(ctx)
}
