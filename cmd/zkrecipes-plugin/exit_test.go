package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

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
