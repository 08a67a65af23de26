package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// requireNodeEnv makes the test fail if the client in Node cannot be run.
const requireNodeEnv = "ZKRECIPES_REQUIRE_NODE"

// The test runs the client in testdata/node-client, which uses the .proto files and none of
// our Go code: handshake, session, lock, token, release, an error, and the plugin's end. It
// needs node, npm, and npm's registry or cache.
func TestClientInAnotherLanguage(t *testing.T) {
	if testing.Short() {
		t.Skip("installs packages")
	}
	skip := t.Skipf
	if os.Getenv(requireNodeEnv) != "" {
		skip = t.Fatalf
	}
	node, err := exec.LookPath("node")
	if err != nil {
		skip("NOT RUN, the interface is not shown to work without Go: %v", err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "testdata", "node-client"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
	defer cancel()
	run := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		if out, err := run("npm", "ci", "--no-audit", "--no-fund", "--prefer-offline"); err != nil {
			skip("NOT RUN, npm ci: %v\n%s", err, out)
		}
	}
	plugin := filepath.Join(dir, "zkrecipes-plugin")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", plugin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	protos, err := filepath.Abs(filepath.Join("..", "..", "plugin", "proto"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := run(node, "client.js", plugin, protos, s.Addr(), "/from-node")
	want := regexp.MustCompile(`^capabilities .*lock.*
token [1-9][0-9]*
released
refused INVALID_ARGUMENT INVALID
session STATE_LOST
the plugin has ended
$`)
	if err != nil || !want.MatchString(out) {
		t.Errorf("%v\n%s", err, out)
	}
	for _, n := range s.Tree() {
		if n.Stat.EphemeralOwner != 0 {
			t.Errorf("left behind: %s", n.Path)
		}
	}
	if len(s.Sessions()) > 0 {
		t.Error("a session is left")
	}
}
