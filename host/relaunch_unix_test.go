//go:build unix

package host_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// launchKeeping launches a plugin whose sessions outlive it, and opens one with what a
// session can hold.
func launchKeeping(t *testing.T) (p *host.Plugin, cfg host.Config, servers []string, s recipes.Session) {
	t.Helper()
	servers = []string{embedded(t).Addr()}
	cfg = config(t, "real plugin", quickExit)
	cfg.KeepSessions = true
	p = launch(t, cfg)
	s, err := p.Open(ctx(t), recipes.SessionConfig{Servers: servers, SessionTimeout: longTimeout})
	if err != nil {
		t.Fatal(err)
	}
	return p, cfg, servers, s
}

// killAndWait kills a plugin, and returns when nothing of its process is left.
func killAndWait(t *testing.T, p *host.Plugin) {
	t.Helper()
	signal(t, p.PID(), syscall.SIGKILL)
	closes(t, "Exited", p.Exited())
}

// connects waits until a session is connected.
func connects(t *testing.T, s recipes.Session) {
	t.Helper()
	watching, cancel := context.WithCancel(ctx(t))
	defer cancel()
	for e := range s.Events(watching) {
		if e.State == recipes.Connected {
			return
		}
	}
	t.Fatalf("it does not connect: %v", s.Err())
}

// TestARelaunchedPluginTakesUpWhatWasHeld: with its token, twice, and nobody else is granted
// it. The plugins that were relaunched have nothing to close.
func TestARelaunchedPluginTakesUpWhatWasHeld(t *testing.T) {
	p, cfg, servers, s := launchKeeping(t)
	rival, err := zookeeper.Open(ctx(t), recipes.SessionConfig{Servers: servers, SessionTimeout: longTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rival.Close(context.Background()) })
	prepare(t, rival)
	var held []recipes.Grant
	for _, h := range holdings {
		g, err := h.get(ctx(t), s)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, g)
	}
	token := held[0].Token()
	for range 2 {
		killAndWait(t, p)
		if state := s.State(); state != recipes.Suspended {
			t.Fatalf("without a plugin the session is %v: %v", state, s.Err())
		}
		next, err := p.Relaunch(ctx(t), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = next.Close(context.Background()) })
		if _, err := p.Relaunch(ctx(t), cfg); err == nil {
			t.Error("the sessions went on in two plugins")
		}
		if err := p.Close(ctx(t)); err != nil {
			t.Error(err)
		}
		p = next
		connects(t, s)
		for i, h := range holdings {
			if err := held[i].Err(); err != nil {
				t.Fatalf("%s: %v", h.name, err)
			}
			h.isTaken(t, rival)
		}
	}
	if held[0].Token() != token {
		t.Error("another token")
	}
	for i, h := range holdings {
		if err := h.giveBack(ctx(t), held[i]); err != nil {
			t.Errorf("%s: given back: %v", h.name, err)
		}
	}
	if err := p.Close(ctx(t)); err != nil {
		t.Error(err)
	}
	closes(t, "Done", s.Done())
	if err := s.Err(); !errors.Is(err, recipes.ErrClosed) {
		t.Errorf("closed with its plugin, the session says %v", err)
	}
}

// TestASessionThatNobodyRelaunchesIsLost: at its deadline, or when its dead plugin is closed.
func TestASessionThatNobodyRelaunchesIsLost(t *testing.T) {
	t.Run("deadline", func(t *testing.T) {
		p, _, servers, long := launchKeeping(t)
		short, err := p.Open(ctx(t), recipes.SessionConfig{Servers: servers, SessionTimeout: shortTimeout})
		if err != nil {
			t.Fatal(err)
		}
		killAndWait(t, p)
		closes(t, "Done", short.Done())
		if err := short.Err(); !errors.Is(err, recipes.ErrDeadline) {
			t.Errorf("at its deadline it says %v", err)
		}
		if err := long.Err(); err != nil {
			t.Errorf("before its deadline it says %v", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		p, cfg, _, s := launchKeeping(t)
		killAndWait(t, p)
		if err := p.Close(ctx(t)); err != nil {
			t.Error(err)
		}
		closes(t, "Done", s.Done())
		if err := s.Err(); !errors.Is(err, recipes.ErrClosed) || !strings.Contains(err.Error(), "the host has closed the plugin") {
			t.Errorf("it says %v", err)
		}
		if _, err := p.Relaunch(ctx(t), cfg); !errors.Is(err, recipes.ErrClosed) {
			t.Errorf("relaunched after Close: %v", err)
		}
	})
}

// TestRelaunchRefuses: what it refuses changes nothing, and so does a start that fails.
func TestRelaunchRefuses(t *testing.T) {
	p, cfg, _, s := launchKeeping(t)
	if _, err := p.Relaunch(ctx(t), cfg); err == nil {
		t.Error("relaunched while it runs")
	}
	killAndWait(t, p)
	missing := cfg
	missing.Path = filepath.Join(t.TempDir(), "missing")
	if _, err := p.Relaunch(ctx(t), missing); err == nil {
		t.Error("a plugin that does not exist was started")
	}
	next, err := p.Relaunch(ctx(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	connects(t, s)
	if err := next.Close(ctx(t)); err != nil {
		t.Error(err)
	}

	cfg.KeepSessions = false
	plain := launch(t, cfg)
	killAndWait(t, plain)
	if _, err := plain.Relaunch(ctx(t), cfg); err == nil {
		t.Error("relaunched without KeepSessions")
	}
}

// TestCloseDuringARelaunch: the sessions end, and so does the plugin that is being started.
func TestCloseDuringARelaunch(t *testing.T) {
	p, cfg, _, s := launchKeeping(t)
	killAndWait(t, p)
	warned := &held{reached: make(chan struct{}), goOn: make(chan struct{})}
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: warned}) // without a checksum each start warns
	relaunched := make(chan error, 1)
	go func() {
		_, err := p.Relaunch(ctx(t), cfg)
		relaunched <- err
	}()
	closes(t, "the start", warned.reached)
	if err := p.Close(ctx(t)); err != nil {
		t.Error(err)
	}
	closes(t, "Done", s.Done())
	close(warned.goOn)
	if err := <-relaunched; !errors.Is(err, recipes.ErrClosed) {
		t.Errorf("relaunched while it was closed: %v", err)
	}
	if err := s.Err(); !errors.Is(err, recipes.ErrClosed) {
		t.Errorf("the session says %v", err)
	}
}

// held is a log whose first line waits.
type held struct {
	once          sync.Once
	reached, goOn chan struct{}
}

func (h *held) Write(line []byte) (int, error) {
	h.once.Do(func() {
		close(h.reached)
		<-h.goOn
	})
	return len(line), nil
}
