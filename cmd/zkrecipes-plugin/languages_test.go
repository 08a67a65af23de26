package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
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
// needs node, npm, and npm's registry or cache. make test-all runs it; TestAResumingHostInPython does more.
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

// TestHostInPython does what examples/python/README.md says: it compiles the .proto files with the
// system's protoc and runs the host. That is a handshake with mutual TLS, a session, a lock with a
// guarded write, an election and a queue. It needs protoc with its well-known types and its plugin
// for gRPC, python3 with grpc, and openssl.
func TestHostInPython(t *testing.T) {
	f := newForeign(t, requirePythonEnv)
	python, copied := f.python()
	readme := string(must.Get(os.ReadFile(filepath.Join(copied, "README.md")))(t))
	run := regexp.MustCompile("(?s)```console\n\\$ python3 (host.py [^\n]+)\n(.*?)```").FindStringSubmatch(readme)
	if run == nil {
		t.Fatalf("the README runs no host:\n%s", readme)
	}
	command := fmt.Sprintf("cd %q && %q -B %s", copied, python, strings.ReplaceAll(run[1], "127.0.0.1:2181", f.server.Addr()))
	f.prints("^"+regexp.MustCompile(`\d+`).ReplaceAllString(run[2], `[1-9][0-9]*`)+"$", "sh", "-c", command)
	written := func(n zkserver.Node) bool { return n.Path == "/python" && string(n.Data) == "mine" }
	if !slices.ContainsFunc(f.server.Tree(), written) {
		t.Error("the guarded write is not there")
	}
	if lines := strings.Count(string(must.Get(os.ReadFile(filepath.Join(copied, "host.py")))(t)), "\n"); lines > 200 {
		t.Errorf("host.py has %d lines, too many to copy", lines)
	}
}

// The host in testdata/python-client/resume.py meets refusals with their reasons, and half-closes a
// stream. Then its plugin is killed, another one resumes its session, and ends.
func TestAResumingHostInPython(t *testing.T) {
	f := newForeign(t, requirePythonEnv)
	python, copied := f.python()
	t.Setenv("PYTHONPATH", copied)
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
$`, python, "-B", f.client("resume.py"), built(t), f.server.Addr(), "/from-python")
}

// The host in testdata/python-client/verify.py passes zkbench verify -host, also where it resumes.
func TestVerifyAHostInPython(t *testing.T) {
	f := newForeign(t, requirePythonEnv)
	python, copied := f.python()
	t.Setenv("PYTHONPATH", copied)
	zkbench := filepath.Join(f.dir, "zkbench")
	build := exec.CommandContext(f.ctx, "go", "build", "-o", zkbench, "../zkbench")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// A part takes long on a busy machine.
	verify := exec.CommandContext(f.ctx, zkbench, "verify", "-host", "-parallel", "8", "-limit", "5m", python, "-B", f.client("verify.py"))
	if out, err := verify.CombinedOutput(); err != nil || !regexp.MustCompile(`(?m)^zkbench: 25 passed, 0 failed, 0 skipped$`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
}

// The host in testdata/python-client/shares.py is a member of Shares beside members in Go, one of
// which assigns. It takes numbers from them and gives them back, with tokens that grow. With
// another n it is refused.
func TestSharesWithAHostInPython(t *testing.T) {
	f := newForeign(t, requirePythonEnv)
	// says lets the host run to its next lines.
	host := func(args ...string) (says func(want ...string)) {
		input, line := f.host("shares.py", append([]string{"/shares"}, args...)...)
		return func(want ...string) {
			t.Helper()
			for _, want := range want {
				line(want)
			}
			fmt.Fprintln(input) // the host may have ended
		}
	}
	join := func() (recipes.Client, recipes.Portion, func(n int) map[int]recipes.Token) {
		s := f.open()
		p := must.Get(must.Get(s.Shares("/shares", 6, recipes.SharesConfig{}))(t).Join(f.ctx))(t)
		return s, p, func(n int) map[int]recipes.Token {
			t.Helper()
			tokens := make(map[int]recipes.Token)
			for len(tokens) != n {
				clear(tokens)
				select {
				case list := <-p.Changes():
					for _, share := range list {
						tokens[share.Number()] = share.Token()
					}
				case <-f.ctx.Done():
					t.Fatalf("the member does not own %d numbers", n)
				}
			}
			return tokens
		}
	}
	s, _, owns := join()
	numbers, before := must.Get(s.Names("/shares/numbers"))(t), owns(6)
	says := host("6", "3", "2", "3")
	says("owns 3")
	kept := owns(3)
	var lost recipes.Record
	for _, r := range must.Get(numbers.List(f.ctx))(t) {
		number := must.Get(strconv.Atoi(r.Name))(t)
		if kept[number] == 0 {
			lost = r
		}
		if theirs := string(r.Data) == "python"; theirs == (kept[number] != 0) || theirs == (r.Token == before[number]) || r.Token < before[number] {
			t.Errorf("number %d: %+v; its token was %v", number, r, before[number])
		}
	}
	operator := must.Get(must.Get(s.Lock("/operator", recipes.LockConfig{}))(t).Acquire(f.ctx))(t)
	must.Do(t, operator.Write(f.ctx, recipes.Delete(lost.Znode, recipes.AnyVersion)))
	for again := range must.Get(numbers.Watch(f.ctx, lost.Name))(t) { // until the host takes it again
		if again.Token > lost.Token && string(again.Data) == "python" {
			break
		}
	}
	_, other, _ := join()
	says("owns 2")
	must.Do(t, other.Leave(f.ctx))
	says("owns 3")
	says("owns 0", "exit code 0", "")
	owns(6)
	says = host("5", "1")
	says("refused")
	says("exit code 0", "")
}

// The host in testdata/python-client/once.py and a caller in Go share a period, by the server's clock.
func TestOncePerWithAHostInPython(t *testing.T) {
	f := newForeign(t, requirePythonEnv)
	s := f.open()
	lock, record := must.Get(s.Lock("/turns", recipes.LockConfig{}))(t), must.Get(s.Configuration("/turns"))(t)
	// inGo counts a turn if one is due.
	inGo := func() (early *recipes.NotDueError) {
		h := must.Get(lock.Acquire(f.ctx))(t)
		turn, err := recipes.OncePer(f.ctx, h, record, 24*time.Hour)
		if !errors.As(err, &early) {
			must.Do(t, must.Get(turn, err)(t).Count(f.ctx))
		}
		must.Do(t, h.Release(f.ctx))
		return early
	}
	input, line := f.host("once.py", "/turns", "86400")
	inPython := func(want string) string { fmt.Fprintln(input); return line(want) }
	inGo()
	inPython("not due")
	f.server.SetClock(24 * time.Hour)
	inPython("due")
	must.Do(t, record.Delete(f.ctx, "once", recipes.AnyRevision)) // the host creates it again
	counted := inPython("counted ")
	if early := inGo(); early == nil || fmt.Sprint("counted ", early.Last.UnixMilli()) != counted {
		t.Errorf("the host has %s; in Go it is %v", counted, early)
	}
	f.server.SetClock(0)
	inPython("not due") // this call starts the period again
	if early := inGo(); early == nil || early.Back != 0 {
		t.Errorf("after the clock was set back: %+v", early)
	}
	must.Do(t, input.Close())
	line("exit code 0")
	line("") // the end: the host has removed its files
}

func (f foreign) open() recipes.Client {
	s := must.Get(zookeeper.Open(f.ctx, recipes.SessionConfig{Servers: []string{f.server.Addr()}}))(f.T)
	f.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// host starts a host in Python. line waits for the next line of its output, and checks its beginning.
func (f foreign) host(name string, args ...string) (input io.WriteCloser, line func(want string) string) {
	python, copied := f.python()
	cmd := exec.CommandContext(f.ctx, python, append([]string{"-B", f.client(name), built(f.T), f.server.Addr()}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+copied)
	cmd.Stderr = os.Stderr
	input, lines := must.Get(cmd.StdinPipe())(f.T), bufio.NewScanner(must.Get(cmd.StdoutPipe())(f.T))
	must.Do(f.T, cmd.Start())
	f.Cleanup(func() { _ = input.Close(); _ = cmd.Wait() })
	return input, func(want string) string {
		f.Helper()
		if lines.Scan(); !strings.HasPrefix(lines.Text(), want) {
			f.Fatalf("the host prints %q; want %q", lines.Text(), want)
		}
		return lines.Text()
	}
}

// client returns the file of a host over examples/python.
func (f foreign) client(name string) string {
	return filepath.Join(f.root, "testdata", "python-client", name)
}

// python returns an interpreter, and a copy of examples/python with the modules that the README's
// command generates.
func (f foreign) python() (python, copied string) {
	if python = pythonWithGRPC(f.T); python == "" {
		f.skip("NOT RUN, the interface is not shown to work from Python: no python3 that has grpc")
	}
	for _, program := range []string{"protoc", "grpc_python_plugin", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			f.skip("NOT RUN, the protos are not shown to compile elsewhere: %v", err)
		}
	}
	if copied = filepath.Join(f.dir, "examples", "python"); exists(copied) {
		return python, copied
	}
	must.Do(f.T, os.CopyFS(copied, os.DirFS(filepath.Join(f.root, "examples", "python"))))
	must.Do(f.T, os.Symlink(filepath.Join(f.root, "plugin"), filepath.Join(f.dir, "plugin")))
	must.Do(f.T, os.Symlink(filepath.Dir(built(f.T)), filepath.Join(f.dir, "bin")))
	readme := string(must.Get(os.ReadFile(filepath.Join(copied, "README.md")))(f.T))
	command := regexp.MustCompile("(?s)```sh\n(protoc .*?)```").FindStringSubmatch(readme)
	if command == nil {
		f.Fatalf("the README generates nothing:\n%s", readme)
	}
	protoc := exec.CommandContext(f.ctx, "sh", "-c", command[1])
	protoc.Dir = copied
	if out, err := protoc.CombinedOutput(); err != nil || len(out) > 0 {
		f.Fatalf("%s: %v\n%s", command[1], err, out)
	}
	return python, copied
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
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
