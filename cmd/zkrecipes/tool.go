package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// closeTimeout bounds giving back what was taken, and ending the plugin.
const closeTimeout = 10 * time.Second

// tool is zkrecipes with what it talks to.
type tool struct {
	stdout, stderr io.Writer
	config         string // the flag
}

// fail reports an error that no verb has.
func (t *tool) fail(who string, err error) int {
	fmt.Fprintf(t.stderr, "%s: %v\n", who, err)
	return exitUsage
}

// load reads the configuration.
func (t *tool) load(out *output) (hostconfig.Config, error) {
	cfg, err := hostconfig.Load(t.config)
	if err != nil {
		return cfg, exitError{exitUsage, err}
	}
	cfg.Plugin.Logger = hclog.New(&hclog.LoggerOptions{
		Name: "zkrecipes", Level: cfg.LogLevel, Output: t.stderr, JSONFormat: out.json,
	})
	return cfg, nil
}

// withSession runs f with a session through the plugin, and ends both. That they
// end is not what was asked for: if f was done, it was done, and a script must not
// do it again.
func (t *tool) withSession(ctx context.Context, out *output, f func(recipes.Session) error) (err error) {
	cfg, err := t.load(out)
	if err != nil {
		return err
	}
	p, err := host.Launch(ctx, cfg.Plugin)
	if err != nil {
		return err
	}
	defer func() { // closes the session too
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if closing := p.Close(ctx); closing != nil && err == nil {
			out.event(event{Event: "unclosed", Cause: closing.Error()}, closing.Error())
		}
	}()
	s, err := p.Open(ctx, cfg.ZooKeeper)
	if err != nil {
		if errors.Is(err, recipes.ErrUnavailable) {
			err = fmt.Errorf("%w; zkrecipes doctor says what to do", err)
		}
		return err
	}
	return f(s)
}
