package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// These variables make a test fail if its host cannot be run.
const (
	requireNodeEnv   = "ZKRECIPES_REQUIRE_NODE"
	requirePythonEnv = "ZKRECIPES_REQUIRE_PYTHON"
)

// A foreign host is a program in another language, and a server for it.
type foreign struct {
	*testing.T
	ctx    context.Context
	root   string // of the repository
	dir    string // for temporary files
	server *zkserver.Server
	skip   func(format string, args ...any)
}

func newForeign(t *testing.T, required string) foreign {
	if testing.Short() {
		t.Skip("builds the plugin")
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
	t.Cleanup(cancel)
	f := foreign{t, ctx, must.Get(filepath.Abs(filepath.Join("..", "..")))(t), t.TempDir(), must.Get(zkserver.Listen(zkserver.Config{}))(t), t.Skipf}
	t.Cleanup(func() { _ = f.server.Close() })
	if os.Getenv(required) != "" {
		f.skip = t.Fatalf
	}
	return f
}

// prints runs the host, and checks its output and that it leaves nothing in ZooKeeper.
func (f foreign) prints(want string, name string, args ...string) {
	f.Helper()
	out, err := exec.CommandContext(f.ctx, name, args...).CombinedOutput()
	if err != nil || !regexp.MustCompile(want).Match(out) {
		f.Errorf("%v\n%s", err, out)
	}
	for _, n := range f.server.Tree() {
		if n.Stat.EphemeralOwner != 0 {
			f.Errorf("left behind: %s", n.Path)
		}
	}
	if len(f.server.Sessions()) > 0 {
		f.Error("a session is left")
	}
}

// The test runs the client in testdata/node-client, which uses the .proto files and none of
// our Go code: handshake, session, lock, token, release, an error, and the plugin's end. It
// needs node, npm, and npm's registry or cache. make test-all runs it; TestHostInPython does more.
func TestClientInAnotherLanguage(t *testing.T) {
	testall.Require(t)
	f := newForeign(t, requireNodeEnv)
	node, err := exec.LookPath("node")
	if err != nil {
		f.skip("NOT RUN, the interface is not shown to work without Go: %v", err)
	}
	must.Do(t, os.CopyFS(f.dir, os.DirFS(filepath.Join(f.root, "testdata", "node-client"))))
	if _, err := os.Stat(filepath.Join(f.dir, "node_modules")); err != nil {
		npm := exec.CommandContext(f.ctx, "npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
		npm.Dir = f.dir
		if out, err := npm.CombinedOutput(); err != nil {
			f.skip("NOT RUN, npm ci: %v\n%s", err, out)
		}
	}
	f.prints(`^capabilities .*lock.*
token [1-9][0-9]*
released
refused INVALID_ARGUMENT INVALID
session STATE_LOST
the plugin has ended
$`, node, filepath.Join(f.dir, "client.js"), built(t), filepath.Join(f.root, "plugin", "proto"), f.server.Addr(), "/from-node")
}

// TestHostInPython compiles the .proto files with the system's protoc and runs the
// host in testdata/python-client with the result. That is a handshake with mutual
// TLS, a session, a lock and its token, refusals with their reasons and a half-closed
// stream. Then the plugin is killed, another one resumes its session, and ends. It needs
// protoc with its well-known types, python3 with grpc, and openssl.
func TestHostInPython(t *testing.T) {
	f := newForeign(t, requirePythonEnv)
	python := pythonWithGRPC(t)
	if python == "" {
		f.skip("NOT RUN, the interface is not shown to work from Python: no python3 that has grpc")
	}
	client, proto := filepath.Join(f.root, "testdata", "python-client"), filepath.Join(f.root, "plugin", "proto")
	protos := must.Get(filepath.Glob(filepath.Join(proto, "zkrecipes", "v1", "*.proto")))(t)
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		f.skip("NOT RUN, the protos are not shown to compile elsewhere: %v", err)
	}
	args := append([]string{"-I", proto, "-I", client, "--python_out=" + f.dir, filepath.Join(client, "error.proto")}, protos...)
	if out, err := exec.CommandContext(f.ctx, protoc, args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("protoc: %v\n%s", err, out)
	}
	f.prints(`^capabilities .*lock.*
token [1-9][0-9]*
try FAILED_PRECONDITION CONTENDED
path INVALID_ARGUMENT INVALID
contenders lock python True
write FAILED_PRECONDITION RELEASED
released
half-closed SESSION_CLOSED
cut off UNAVAILABLE 
before DropRest FAILED_PRECONDITION RESUMING
resumed True True
shut down PLUGIN_LOST
exit code 0
$`, python, filepath.Join(client, "client.py"), built(t), f.dir, f.server.Addr(), "/from-python")
}

// pythonWithGRPC finds an interpreter. Debian's packages are for Debian's interpreter, which
// may not be the first on the PATH.
func pythonWithGRPC(t *testing.T) string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		path, err := exec.LookPath(name)
		if err == nil && exec.CommandContext(t.Context(), path, "-c", "import grpc, google.protobuf").Run() == nil {
			return path
		}
	}
	return ""
}
