package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// closeTimeout bounds giving back what was taken, and ending the plugin.
const closeTimeout = 10 * time.Second

// tool is zkrecipes with what it talks to.
type tool struct {
	stdout, stderr io.Writer
	config         string        // the flag
	life           *job.Lifetime // of the verb's commands, or nil
	connectTimeout time.Duration // the flag; 0 is recipes.DefaultOpenTimeout

	// launch is host.Supervise, but for a test.
	launch func(context.Context, host.Config) (launchedPlugin, error)
}

func newTool(stdout, stderr io.Writer) *tool {
	return &tool{stdout: stdout, stderr: stderr, launch: func(ctx context.Context, cfg host.Config) (launchedPlugin, error) {
		s, err := host.Supervise(ctx, host.SupervisorConfig{Plugin: cfg})
		if err != nil {
			return nil, err
		}
		return supervised{s}, nil
	}}
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
	if t.life != nil {
		cfg.Plugin.Lifetime = t.life.Reader
	}
	var told hclog.ExcludeByMessage // by the tool itself, once, with what depends on it
	told.Add("session lost")
	cfg.Plugin.Logger = hclog.New(&hclog.LoggerOptions{
		Exclude: told.Exclude,
		Name:    "zkrecipes", Level: cfg.LogLevel, Output: t.stderr, JSONFormat: out.json,
	})
	return cfg, nil
}

// withSession runs f with a session through the plugin, and ends both. Whether they
// end well does not matter to the caller: what f has done is done, and a script must
// not do it again.
func (t *tool) withSession(ctx context.Context, out *output, f func(recipes.Session) error) (err error) {
	c := &connection{tool: t, out: out, timeout: t.connectTimeout}
	defer func() { c.end(err) }() // closes the session too
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	return f(s)
}

// connection opens sessions through a plugin, which it launches for the first one,
// and again if it has ended.
type connection struct {
	tool   *tool
	out    *output
	cfg    hostconfig.Config
	plugin launchedPlugin

	timeout time.Duration // of the opening of a session; 0 is that of ctx
}

// supervised is a plugin that is started again when it dies.
type supervised struct{ *host.Supervisor }

// Exited never tells the end: the next plugin takes the place of one that dies.
func (supervised) Exited() <-chan struct{} { return nil }

// launchedPlugin is what a connection needs of a host.Supervisor.
type launchedPlugin interface {
	Open(context.Context, recipes.SessionConfig) (recipes.Session, error)
	Close(context.Context) error
	Exited() <-chan struct{}
}

func (c *connection) open(ctx context.Context) (recipes.Session, error) {
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, c.timeout)
	defer cancel()
	s, err := c.plugin.Open(ctx, c.cfg.ZooKeeper)
	if errors.Is(err, recipes.ErrUnavailable) {
		err = fmt.Errorf("%w; zkrecipes doctor says what to do", err)
	}
	return s, err
}

// start launches a plugin unless one runs.
func (c *connection) start(ctx context.Context) (err error) {
	if c.plugin == nil {
		if c.cfg, err = c.tool.load(c.out); err != nil {
			return err
		}
	} else {
		select {
		case <-c.plugin.Exited():
			c.plugin = nil
		default:
			return nil
		}
	}
	p, err := c.tool.launch(ctx, c.cfg.Plugin)
	if err != nil {
		return ownError{err}
	}
	c.plugin = p
	return nil
}

// ownError is a failure of zkrecipes or of ZooKeeper: the plugin did not start, or no
// server answered. The verb's own code says so, whatever error is wrapped.
type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

// end ends the plugin, and says so if that fails and nothing else has: err is why
// the verb fails.
func (c *connection) end(err error) {
	if c.plugin == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if closing := c.plugin.Close(ctx); closing != nil && err == nil {
		c.out.event(event{Event: "unclosed", Cause: closing.Error()}, closing.Error())
	}
}
