// Package hosttest is for the tests of applications that use package host. One line
// returns a session through a plugin, on a ZooKeeper server in the test's process.
// Everything is cleaned up when the test ends.
//
//	func TestMyJob(t *testing.T) {
//		session := hosttest.New(t).Open(t)
//		...
//	}
//
// A [World] opens several sessions on one server, and injects failures: [World.Expire],
// [World.Disconnect], and a plugin process that can be killed ([NewProcess]).
//
// The server keeps everything in memory, and does not prove how Apache ZooKeeper behaves.
// The recipes are tested against both. Unlike package host, this package contains the
// ZooKeeper client: import it only in tests.
package hosttest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// cleanUp bounds the closing of a session or a plugin at the end of a test.
const cleanUp = 10 * time.Second

// World is a ZooKeeper server and a plugin, for one test and its subtests. Its methods
// may be called from several goroutines.
type World struct {
	// Plugin is the plugin that an application would have launched.
	Plugin *host.Plugin

	server *zkserver.Server
}

// New returns a World whose plugin is in this process. It serves the same gRPC as a plugin
// process, over memory. New takes about a millisecond.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{server: serve(t)}
	p, err := host.InProcess(zookeeper.Open)
	w.add(t, p, err)
	return w
}

// NewProcess returns a World whose plugin is a process. It builds the plugin with go build,
// from the version of this module that the test uses, which takes about a second. If
// ZKRECIPES_TEST_PLUGIN names a file, that is the plugin. cfg may be the zero value. NewProcess
// overwrites its Path.
func NewProcess(t testing.TB, cfg host.Config) *World {
	t.Helper()
	w := &World{server: serve(t)}
	cfg.Path = build(t)
	p, err := host.Launch(t.Context(), cfg)
	w.add(t, p, err)
	return w
}

func serve(t testing.TB) *zkserver.Server {
	t.Helper()
	s, err := zkserver.Listen(zkserver.Config{MinSessionTimeout: time.Millisecond, MaxSessionTimeout: time.Hour})
	if err != nil {
		t.Fatalf("hosttest: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *World) add(t testing.TB, p *host.Plugin, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("hosttest: %v", err)
	}
	w.Plugin = p
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
		defer cancel()
		_ = p.Close(ctx) // the test may have killed it, or its sessions
	})
}

// pluginEnv names the file of a plugin to use instead of building one: .ci/suite versions tests
// a host with the plugin of another version.
const pluginEnv = "ZKRECIPES_TEST_PLUGIN"

// build builds the plugin into a directory that is deleted with the test.
func build(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(pluginEnv); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), host.PluginName)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/zkrecipes/zkrecipes/cmd/zkrecipes-plugin")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("hosttest: build the plugin: %v\n%s", err, out)
	}
	return path
}

// Config returns a configuration for Plugin.Open with a session timeout of ten seconds. The
// server accepts timeouts from a millisecond to an hour.
func (w *World) Config() recipes.SessionConfig {
	return recipes.SessionConfig{Servers: []string{w.server.Addr()}, SessionTimeout: 10 * time.Second}
}

// Open opens a session through the plugin. The session is closed at the latest when the test
// ends.
func (w *World) Open(t testing.TB) recipes.Client {
	t.Helper()
	s, err := w.Plugin.Open(t.Context(), w.Config())
	if err != nil {
		t.Fatalf("hosttest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
		defer cancel()
		_ = s.Close(ctx) // the test may have closed it, or ended it otherwise
	})
	return s
}

// Expire makes the server expire a session now, as if the session timeout had passed.
func (w *World) Expire(s recipes.Session) { w.server.ExpireSession(s.ID()) }

// Disconnect breaks all connections to the server, which refuses new ones until Reconnect.
// Sessions are Suspended, and lost at their deadline.
func (w *World) Disconnect() {
	w.server.RefuseConnections(true)
	w.server.CloseAllConnections()
}

// Reconnect makes the server accept connections again.
func (w *World) Reconnect() { w.server.RefuseConnections(false) }

// Nodes returns the paths of all znodes but ZooKeeper's own, sorted. With it a test can check
// what it has left behind.
func (w *World) Nodes() []string {
	var paths []string
	for _, n := range w.server.Tree() {
		if n.Path != "/" && n.Path != "/zookeeper" && !strings.HasPrefix(n.Path, "/zookeeper/") {
			paths = append(paths, n.Path)
		}
	}
	slices.Sort(paths)
	return paths
}
