package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// With mainEnv set the test binary is the plugin.
func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		return
	}
	leaktest.Main(withBuild{m})
}

const mainEnv = "TEST_MAIN"

// withBuild runs the tests, and then deletes the plugin that they have built.
type withBuild struct{ tests *testing.M }

func (w withBuild) Run() int {
	dir, err := os.MkdirTemp("", "plugin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build = sync.OnceValues(func() (string, error) {
		path := filepath.Join(dir, "zkrecipes-plugin")
		cmd := exec.Command("go", "build", "-ldflags=-w", "-o", path, ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return path, nil
	})
	return w.tests.Run()
}

// build builds the plugin once, without the race detector.
var build func() (path string, err error)

func built(t *testing.T) string { return must.Get(build())(t) }

func TestPluginStartedByAPersonPrintsItsUsage(t *testing.T) {
	for _, test := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"nothing", nil, 1, "", "host.Launch"},
		{"version", []string{"-version"}, 0, "protocol 1", ""},
		{"long version", []string{"--version"}, 0, "protocol 1", ""},
		{"version verb", []string{"version"}, 0, "zkrecipes-plugin ", ""},
		{"help", []string{"-h"}, 0, "", "host.Launch"},
		{"argument", []string{"serve"}, 2, "", "takes no arguments but describe"},
		{"flag", []string{"-port=1"}, 2, "", "usage:"},
		{"limits alone", []string{"-max-sessions=2"}, 1, "", "host.Launch"},
		{"limit of nothing", []string{"-max-holds=0"}, 2, "", "it must be a whole number from 1"},
		{"limit in words", []string{"-max-message=1MiB"}, 2, "", "it must be a whole number from 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			cmd := exec.Command(os.Args[0], test.args...)
			cmd.Env = append(os.Environ(), mainEnv+"=1")
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d; want %d", code, test.code)
			}
			for _, s := range []struct{ name, got, want string }{
				{"stdout", stdout.String(), test.stdout}, {"stderr", stderr.String(), test.stderr},
			} {
				if s.want == "" && s.got != "" || !strings.Contains(s.got, s.want) {
					t.Errorf("%s is %q; want %q in it", s.name, s.got, s.want)
				}
			}
		})
	}
}

// PROTOCOL.md promises these exit codes to hosts.
func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		name, variable, stderr string
		code                   int
		slow                   bool
	}{
		{"nobody attaches", "NONE=", "no host has attached", 3, true},
		{"no such directory", "PLUGIN_UNIX_SOCKET_DIR=" + filepath.Join(t.TempDir(), "none"), "no such file or directory", 4, false},
		{"a directory whose path is too long", "PLUGIN_UNIX_SOCKET_DIR=" + long(t), "invalid argument", 4, false},
		{"no certificate", "PLUGIN_CLIENT_CERT=none", "no certificate in PEM", 5, false},
		{"no pipe", handshake.LifetimeEnv + "=none", handshake.LifetimeEnv + "=none: not a number", 6, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.slow && testing.Short() {
				t.Skip("waits for as long as a plugin waits for a host")
			}
			cookie := handshake.Config()
			var stderr strings.Builder
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), mainEnv+"=1", cookie.MagicCookieKey+"="+cookie.MagicCookieValue,
				"PLUGIN_PROTOCOL_VERSIONS=1", test.variable)
			cmd.Stderr = &stderr
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("exit code %d, stderr %q; want %d, %q", code, stderr.String(), test.code, test.stderr)
			}
		})
	}
}

// long is a directory whose path is too long for a socket.
func long(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	must.Do(t, os.Mkdir(dir, 0o700))
	return dir
}
