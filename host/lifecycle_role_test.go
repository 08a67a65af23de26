package host_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

const (
	// serverEnv is the address of the ZooKeeper server of a case, and pointEnv
	// what the host does there.
	serverEnv = "TEST_SERVER"
	pointEnv  = "TEST_POINT"
)

// realPlugin is a plugin over ZooKeeper.
func realPlugin() {
	report("plugin", fmt.Sprint(os.Getpid()))
	plugin.Serve(zookeeper.Open, plugin.Resume(zookeeper.Resume))
}

// lingeringPlugin is one that does not end when it was told to.
func lingeringPlugin() {
	realPlugin()
	watchdog.Hang()
}

// cutOffPlugin is one that reaches no server, though it says that it can resume.
func cutOffPlugin() {
	plugin.Serve(func(context.Context, recipes.SessionConfig) (recipes.Client, error) {
		return nil, fmt.Errorf("%w: cut off", recipes.ErrUnavailable)
	}, plugin.Resume(zookeeper.Resume))
}

// killedInResume is one that ends when it is asked for the second session.
func killedInResume() {
	var asked atomic.Int32
	plugin.Serve(zookeeper.Open, plugin.Resume(func(ctx context.Context, cfg recipes.SessionConfig, ticket []byte, contact time.Time) (recipes.Client, error) {
		if asked.Add(1) == 2 {
			os.Exit(3)
		}
		return zookeeper.Resume(ctx, cfg, ticket, contact)
	}))
}

// keepingPlugin is one that refuses to let go of its sessions.
func keepingPlugin() {
	plugin.Serve(func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		s, err := zookeeper.Open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return kept{s.(movable)}, nil
	}, plugin.Resume(zookeeper.Resume))
}

// movable is what a plugin needs of a session that another one can resume.
type movable interface {
	recipes.Client
	ResumeTicket() []byte
	KnownContact() time.Time
	Identified() bool
	WasResumed(znode string) bool
	DropRest(context.Context) error
	Detach(context.Context) error
}

type kept struct{ movable }

func (kept) Detach(context.Context) error { return recipes.ErrUnavailable }

// leave is a server at which leavingPlugin opens no session.
const leave = "leave"

// leavingPlugin is one that exits, with code 0 and without a word, when a session is to be
// opened at leave.
func leavingPlugin() {
	plugin.Serve(func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		if strings.HasPrefix(cfg.Servers[0], leave) { // the host adds the port
			os.Exit(0)
		}
		return zookeeper.Open(ctx, cfg)
	}, plugin.Resume(zookeeper.Resume))
}

// doings are what a host is doing when a process dies. Those that end report it.
var doings = map[string]func(context.Context, recipes.Client, func(string)) error{
	"lock": func(ctx context.Context, s recipes.Client, say func(string)) error {
		h, err := lockOf(ctx, s)
		if err == nil {
			h.Done()
			say("there")
		}
		return err
	},
	"write": func(ctx context.Context, s recipes.Client, say func(string)) error {
		h, err := lockOf(ctx, s)
		if err == nil {
			err = h.Write(ctx, recipes.Set("/p", []byte("x"), recipes.AnyVersion))
		}
		return err
	},
	"release": func(ctx context.Context, s recipes.Client, say func(string)) error {
		h, err := lockOf(ctx, s)
		if err == nil {
			err = h.Release(ctx)
		}
		return err
	},
}

func lockOf(ctx context.Context, s recipes.Recipes) (recipes.Hold, error) {
	l, err := s.Lock("/p", recipes.LockConfig{})
	if err != nil {
		return nil, err
	}
	return l.Acquire(ctx)
}

// runRealHost does one thing through a plugin over ZooKeeper, reports when its session is
// lost, and goes on running.
func runRealHost() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	self, err := os.Executable()
	must(err)
	timeout, err := time.ParseDuration(os.Getenv("TEST_TIMEOUT"))
	must(err)
	ctx := context.Background()
	p, err := host.Launch(ctx, host.Config{Path: self, Env: []string{roleEnv + "=real plugin", reportEnv, quickExit}})
	must(err)
	s, err := p.Open(ctx, recipes.SessionConfig{Servers: []string{os.Getenv(serverEnv)}, SessionTimeout: timeout})
	must(err)
	conn := report("host")
	say := func(what string) { _, _ = conn.Write([]byte(what + "\n")) }
	go func() { // to the process's end
		_ = doings[os.Getenv(pointEnv)](ctx, s, say) // fails when somebody dies
	}()
	<-s.Done()
	say(fmt.Sprintf("lost %d", time.Now().UnixNano()))
	watchdog.Hang()
}
