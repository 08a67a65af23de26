package verb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/metric"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/internal/fourletter"
	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// CloseTimeout bounds each release, and the end of the plugin.
const CloseTimeout = 10 * time.Second

// Tool is one run of zkrecipes. Results go to Stdout. Events and errors go to Stderr, in JSON
// as one object a line.
type Tool struct {
	Stdout, Stderr io.Writer
	JSON           bool
	Reads          int                  // the most reads a second of a session; 0: no limit
	Life           *job.Lifetime        // of the verb's commands, or nil
	Meters         metric.MeterProvider // gets the metrics of sessions and holds; may be nil

	// Launch is host.Supervise, except in tests.
	Launch func(context.Context, host.Config) (Plugin, error)

	where
}

// NewTool returns a tool that writes text.
func NewTool(stdout, stderr io.Writer) *Tool {
	return &Tool{Stdout: stdout, Stderr: stderr, Launch: func(ctx context.Context, cfg host.Config) (Plugin, error) {
		return host.Supervise(ctx, host.SupervisorConfig{Plugin: cfg})
	}}
}

// Config is the file of -config, or "".
func (t *Tool) Config() string { return t.config }

// Sources returns where the values of the configuration that its file does not give come from:
// flags, and variables.
func (t *Tool) Sources(cfg hostconfig.Config) []string { return t.sources(cfg.Variables) }

// Load reads the configuration.
func (t *Tool) Load() (hostconfig.Config, error) {
	cfg, err := hostconfig.Load(t.config)
	if err != nil {
		return cfg, exit.With(exit.Misuse, "%w", err)
	}
	cfg.ZooKeeper.ReadsPerSecond = t.Reads
	if t.Life != nil {
		cfg.Plugin.Lifetime = t.Life.Reader
	}
	cfg.Plugin.MeterProvider = t.Meters
	var reported hclog.ExcludeByMessage // the tool itself reports a loss, and what follows from it
	reported.Add("session lost")
	cfg.Plugin.Logger = hclog.New(&hclog.LoggerOptions{
		Exclude: reported.Exclude,
		Name:    "zkrecipes", Level: cfg.LogLevel, Output: t.log(), JSONFormat: t.JSON,
	})
	return cfg, nil
}

// log is where log entries go, each with one write. The plugin's entries contain texts of
// servers.
func (t *Tool) log() io.Writer {
	if t.JSON {
		return printable.Writer(t.Stderr, printable.JSON)
	}
	return printable.Writer(t.Stderr, entry)
}

// connection opens sessions through a plugin, which it launches for the first one.
type connection struct {
	*Tool
	cfg    hostconfig.Config
	plugin Plugin

	timeout time.Duration // bounds the opening of a session; 0: only ctx does
	lasting bool          // the verb may run for long: it can upgrade its plugin
	control *control      // nil if it is not lasting
}

// Plugin contains the methods of host.Supervisor that the tool calls.
type Plugin interface {
	Open(context.Context, recipes.SessionConfig) (recipes.Client, error)
	Close(context.Context) error
}

func (c *connection) open(ctx context.Context) (recipes.Client, error) {
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	limited, cancel := within(ctx, c.timeout)
	defer cancel()
	s, err := c.plugin.Open(limited, c.cfg.ZooKeeper)
	if errors.Is(err, recipes.ErrUnavailable) {
		if c.timeout > 0 && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // the plugin may notice it first
			err = fmt.Errorf("%w (-connect-timeout is %v)", err, c.timeout)
		}
		err = fmt.Errorf("%w; run zkrecipes doctor for advice", err)
	}
	return s, err
}

// start launches the plugin. For a later session it reads the configuration again, whose servers may
// have changed in the meantime.
func (c *connection) start(ctx context.Context) (err error) {
	if c.plugin != nil { // the supervisor restarts a plugin that exits
		switch again, err := c.Load(); err {
		case nil:
			c.cfg.ZooKeeper = again.ZooKeeper
		default:
			c.cfg.Plugin.Logger.Warn("the configuration cannot be read again; keeping the previous one", "error", err)
		}
		return nil
	}
	if c.cfg, err = c.Load(); err != nil {
		return err
	}
	p, err := c.Launch(ctx, c.cfg.Plugin)
	if errors.Is(err, host.ErrChecksum) {
		err = fmt.Errorf("%w; run zkrecipes doctor for advice", err)
	}
	if err != nil {
		return exit.OwnError{Err: err}
	}
	c.plugin = p
	if c.lasting {
		if c.control, err = c.serveControl(); err != nil {
			c.cfg.Plugin.Logger.Warn("upgrade-plugin cannot reach this process", "error", err)
		}
	}
	return nil
}

// end ends the plugin. If that fails and err is nil, it only prints the failure. The verb does
// not fail, because its work is done and a script must not repeat it.
func (c *connection) end(err error) {
	if c.plugin == nil {
		return
	}
	c.control.close()
	ctx, cancel := context.WithTimeout(context.Background(), CloseTimeout)
	defer cancel()
	if closing := c.plugin.Close(ctx); closing != nil && err == nil {
		c.Event(Event{Event: "unclosed", Cause: closing.Error()}, closing.Error())
	}
}

// AskWord sends a four-letter word and returns the answer, or "" after an error.
func AskWord(ctx context.Context, security *recipes.TLS, server, word string) string {
	var cfg *tls.Config
	if security != nil {
		var err error
		if cfg, err = security.ClientConfig(); err != nil {
			return ""
		}
	}
	answer, _ := fourletter.Dialer(cfg).Ask(ctx, server, word)
	return answer
}
