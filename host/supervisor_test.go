package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// supervise supervises a plugin whose sessions are not resumed.
func supervise(t *testing.T, cfg host.Config) (*host.Supervisor, <-chan host.Change) {
	t.Helper()
	changes := make(chan host.Change, 1000)
	s := must.Get(host.Supervise(ctx(t), host.SupervisorConfig{
		Plugin: cfg, MinBackoff: 10 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, LoseSessions: true,
		Changed: func(c host.Change) { changes <- c },
	}))(t)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s, changes
}

func next(t *testing.T, changes <-chan host.Change) host.Change {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(patience):
		t.Fatal("no change")
	}
	panic("unreachable")
}

func crash(t *testing.T, pid int) {
	t.Helper()
	p := must.Get(os.FindProcess(pid))(t)
	defer func() { _ = p.Release() }() // closes its descriptor now, instead of at a garbage collection
	must.Do(t, p.Kill())
}

func supervised(t *testing.T, s *host.Supervisor) recipes.Client {
	t.Helper()
	return must.Get(s.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}}))(t)
}

// TestCrashedPluginIsRestarted: with LoseSessions its sessions are lost and stay lost. Open
// returns another session. All plugins report to the same meters.
func TestCrashedPluginIsRestarted(t *testing.T) {
	out, provider := &logged{}, &countedProvider{MeterProvider: sdkmetric.NewMeterProvider()}
	cfg := config(t, "plugin")
	cfg.MeterProvider = provider
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: out})
	s, changes := supervise(t, cfg)
	for range 3 {
		session := supervised(t, s)
		h := acquire(t, session)
		pid := s.Plugin().PID()
		crash(t, pid)
		closes(t, "Done", h.Done())
		if c := next(t, changes); !errors.Is(c.Err, recipes.ErrPluginLost) || c.Next <= 0 || c.Plugin != nil {
			t.Errorf("%+v", c)
		}
		again := supervised(t, s) // waits for the restart
		if c := next(t, changes); c.Err != nil || c.Plugin == nil || c.Plugin.PID() == pid {
			t.Errorf("%+v", c)
		}
		must.Report(t, acquire(t, again).Release(ctx(t)))
		if !errors.Is(session.Err(), recipes.ErrPluginLost) {
			t.Errorf("the session was resumed: %v", session.Err())
		}
	}
	if n := provider.meters.Load(); n != 1 {
		t.Errorf("the provider was asked for %d meters", n)
	}
	for _, want := range []string{"its sessions are lost", "was started again"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

// countedProvider counts the meters of this project.
type countedProvider struct {
	metric.MeterProvider
	meters atomic.Int64
}

func (p *countedProvider) Meter(name string, options ...metric.MeterOption) metric.Meter {
	if name == telemetry.Scope {
		p.meters.Add(1)
	}
	return p.MeterProvider.Meter(name, options...)
}

func TestSupervisorCloses(t *testing.T) {
	s, changes := supervise(t, config(t, "plugin"))
	p, session := s.Plugin(), supervised(t, s)
	for range 2 {
		must.Report(t, s.Close(ctx(t)))
	}
	closes(t, "Exited", p.Exited())
	closes(t, "Done", session.Done())
	if _, err := s.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}}); !errors.Is(err, recipes.ErrUnavailable) {
		t.Error(err)
	}
	if len(changes) > 0 {
		t.Errorf("closing counts as a crash: %+v", <-changes)
	}
}

// superviseLink supervises a plugin whose executable the test can remove: it is a link.
func superviseLink(t *testing.T) (link string, s *host.Supervisor, changes <-chan host.Change) {
	t.Helper()
	cfg := config(t, "plugin")
	cfg.Path = filepath.Join(t.TempDir(), "plugin")
	if err := os.Symlink(self(t), cfg.Path); err != nil {
		t.Skip(err)
	}
	s, changes = supervise(t, cfg)
	return cfg.Path, s, changes
}

// TestPluginThatCannotBeRestarted: its executable was removed. The supervisor retries. Open
// says why no plugin runs, and returns a session when the executable exists again.
func TestPluginThatCannotBeRestarted(t *testing.T) {
	link, s, changes := superviseLink(t)
	must.Do(t, os.Rename(link, link+".away"))
	crash(t, s.Plugin().PID())
	for range 3 {
		if c := next(t, changes); c.Err == nil {
			t.Errorf("%+v", c)
		}
	}
	c, cancel := context.WithTimeout(ctx(t), 50*time.Millisecond) // Open must wait until this context ends
	defer cancel()
	_, err := s.Open(c, recipes.SessionConfig{Servers: []string{"server"}})
	if !errors.Is(err, recipes.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), link) {
		t.Error(err)
	}
	if s.Plugin() != nil {
		t.Error("a plugin runs")
	}
	must.Do(t, os.Rename(link+".away", link))
	acquire(t, supervised(t, s))
}

func TestSupervisorThatCannotStartAtAll(t *testing.T) {
	if _, err := host.Supervise(ctx(t), host.SupervisorConfig{Plugin: config(t, "dying")}); err == nil || !strings.Contains(err.Error(), "cannot find my") {
		t.Error(err)
	}
	if _, err := host.Supervise(ctx(t), host.SupervisorConfig{MinBackoff: -1}); err == nil {
		t.Error("a negative backoff")
	}
}

func TestSupervisorIsClosedWhileNoPluginRuns(t *testing.T) {
	link, s, changes := superviseLink(t)
	must.Do(t, os.Remove(link))
	crash(t, s.Plugin().PID())
	next(t, changes)
	must.Report(t, s.Close(ctx(t)))
}
