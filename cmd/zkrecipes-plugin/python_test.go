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

// requirePythonEnv makes the test fail if the host in Python cannot be run.
const requirePythonEnv = "ZKRECIPES_REQUIRE_PYTHON"

// TestHostInPython compiles the .proto files with the system's protoc and runs the
// host in testdata/python-client with the result. That is a handshake with mutual
// TLS, a session, a lock and its token, refusals with their reasons and a half-closed
// stream. Then the plugin is killed, another one resumes its session, and ends. It needs
// protoc with its well-known types, python3 with grpc, and openssl.
func TestHostInPython(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the plugin")
	}
	skip := t.Skipf
	if os.Getenv(requirePythonEnv) != "" {
		skip = t.Fatalf
	}
	python := pythonWithGRPC(t)
	if python == "" {
		skip("NOT RUN, the interface is not shown to work from Python: no python3 that has grpc")
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
	defer cancel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir, client := t.TempDir(), filepath.Join(root, "testdata", "python-client")
	protos, err := filepath.Glob(filepath.Join(root, "plugin", "proto", "zkrecipes", "v1", "*.proto"))
	if err != nil || len(protos) == 0 {
		t.Fatal(protos, err)
	}
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		skip("NOT RUN, the protos are not shown to compile elsewhere: %v", err)
	}
	args := append([]string{"-I", filepath.Join(root, "plugin", "proto"), "-I", client, "--python_out=" + dir, filepath.Join(client, "error.proto")}, protos...)
	if out, err := exec.CommandContext(ctx, protoc, args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("protoc: %v\n%s", err, out)
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
	out, err := exec.CommandContext(ctx, python, filepath.Join(client, "client.py"), plugin, dir, s.Addr(), "/from-python").CombinedOutput()
	want := regexp.MustCompile(`^capabilities .*lock.*
token [1-9][0-9]*
try FAILED_PRECONDITION CONTENDED
path INVALID_ARGUMENT INVALID
contenders lock python True
released
half-closed SESSION_CLOSED
cut off UNAVAILABLE 
before DropRest FAILED_PRECONDITION RESUMING
resumed True True
shut down PLUGIN_LOST
exit code 0
$`)
	if err != nil || !want.Match(out) {
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
