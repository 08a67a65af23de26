package host_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// realPlugin is a plugin with the recipes on ZooKeeper.
func realPlugin() {
	report("plugin", fmt.Sprint(os.Getpid()))
	plugin.Serve(zookeeper.Open, plugin.Resume(zookeeper.Resume))
}

// lingeringPlugin is a plugin that does not exit when it should.
func lingeringPlugin() {
	realPlugin()
	watchdog.Hang()
}

// cutOffPlugin is a plugin with the capability to resume that reaches no server.
func cutOffPlugin() {
	plugin.Serve(func(context.Context, recipes.SessionConfig) (recipes.Client, error) {
		return nil, fmt.Errorf("%w: cut off", recipes.ErrUnavailable)
	}, plugin.Resume(zookeeper.Resume))
}

// killedInResume is a plugin that exits when it should resume the second session.
func killedInResume() {
	var resumed atomic.Int32
	plugin.Serve(zookeeper.Open, plugin.Resume(func(ctx context.Context, cfg recipes.SessionConfig, ticket []byte, contact time.Time) (recipes.Client, error) {
		if resumed.Add(1) == 2 {
			os.Exit(3)
		}
		return zookeeper.Resume(ctx, cfg, ticket, contact)
	}))
}

// keepingPlugin is a plugin that fails to detach from its sessions.
func keepingPlugin() {
	plugin.Serve(func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		s, err := zookeeper.Open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return kept{s.(movable)}, nil
	}, plugin.Resume(zookeeper.Resume))
}

// movable has the methods that package plugin uses to move a session to another process.
type movable interface {
	recipes.Client
	ResumeTicket() []byte
	KnownContact() time.Time
	DropRest(context.Context) error
	Detach(context.Context) error
}

type kept struct{ movable }

func (kept) Detach(context.Context) error { return recipes.ErrUnavailable }

// leave is the address of a server at which leavingPlugin exits.
const leave = "leave"

// leavingPlugin is a plugin that exits with code 0, without an answer, when it should open a
// session at leave.
func leavingPlugin() {
	plugin.Serve(func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		if strings.HasPrefix(cfg.Servers[0], leave) { // the host adds the port
			os.Exit(0)
		}
		return zookeeper.Open(ctx, cfg)
	}, plugin.Resume(zookeeper.Resume))
}

// hostCalls are calls of a host that holds a lock. A process dies in one of them.
var hostCalls = map[string]func(ctx context.Context, h recipes.Hold, send func(string)) error{
	"lock": func(_ context.Context, h recipes.Hold, send func(string)) error {
		h.Done()
		send("there")
		return nil
	},
	"write": func(ctx context.Context, h recipes.Hold, _ func(string)) error {
		return h.Write(ctx, recipes.Set("/p", []byte("x"), recipes.AnyVersion))
	},
	"release": func(ctx context.Context, h recipes.Hold, _ func(string)) error { return h.Release(ctx) },
}

func lockOf(ctx context.Context, s recipes.Recipes) (recipes.Hold, error) {
	l, err := s.Lock("/p", recipes.LockConfig{})
	if err != nil {
		return nil, err
	}
	return l.Acquire(ctx)
}

// runRealHost acquires a lock through a plugin, makes one call, and reports when its session
// is lost. Then it hangs.
func runRealHost() {
	ctx := context.Background()
	p, err := host.Launch(ctx, hostsPlugin("real plugin"))
	check(err)
	s := hostsSession(p.Open)
	conn := report("host")
	send := func(what string) { _, _ = conn.Write([]byte(what + "\n")) }
	go func() { // until the process ends; errors are expected when another process dies
		if h, err := lockOf(ctx, s); err == nil {
			_ = hostCalls[os.Getenv(callEnv)](ctx, h, send)
		}
	}()
	<-s.Done()
	send(fmt.Sprintf("lost %d", time.Now().UnixNano()))
	watchdog.Hang()
}

// runOutlivedHost holds a lock through a supervised plugin, and starts a child that has the
// writing end of the plugin's Lifetime. It reports when another plugin has resumed the
// session.
func runOutlivedHost() {
	reader, writer, err := os.Pipe()
	check(err)
	ctx := context.Background()
	cfg := hostsPlugin("real plugin")
	cfg.Lifetime = reader
	p, err := host.Supervise(ctx, host.SupervisorConfig{Plugin: cfg})
	check(err)
	s := hostsSession(p.Open)
	h, err := lockOf(ctx, s)
	check(err)
	child := exec.Command(cfg.Path)
	child.Env = append(os.Environ(), quickExit, roleEnv+"=child")
	child.ExtraFiles = []*os.File{writer}
	stdout, err := child.StdoutPipe()
	check(err)
	check(child.Start())
	_, err = io.ReadFull(stdout, make([]byte, len(ready)))
	check(err)
	conn := report("host")
	suspended := false
	for e := range s.Events(ctx) {
		switch {
		case e.State == recipes.Suspended:
			suspended = true
		case e.State == recipes.Connected && suspended:
			_, _ = conn.Write([]byte("resumed\n"))
		}
	}
	runtime.KeepAlive(h)
}

const ready = "ready\n"

// runChild runs until it is killed.
func runChild() {
	conn := report("child", fmt.Sprint(os.Getpid()))
	fmt.Print(ready)
	_, _ = conn.Read(make([]byte, 1)) // returns when the test ends, at the latest
}
