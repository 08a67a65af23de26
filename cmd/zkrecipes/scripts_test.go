package main

import (
	"errors"
	"fmt"
	"os"
	gopath "path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/scripttest"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// TestScripts runs the scripts, each with a ZooKeeper server of its own whose
// address is in ZKRECIPES_SERVERS. Commands for scripts:
//
//	zk waiting PATH N    waits until N contenders stand in line at PATH
//	zk free PATH         fails if anybody does
//	zk exists PATH       waits until the node is there
//	zk create PATH [DATA] creates a node, and what is missing above it
//	zk stands PATH NAME  has NAME and a number stand in line at PATH, as another program's
//	zk data PATH TEXT    fails if the node's data is another
//	zk set PATH TEXT     changes the node's data
//	zk delete PATH       deletes the node
//	zk secret PATH       creates a node that nobody may read
//	zk break PATH [last] deletes the first (or last) contender at PATH, as an operator may
//	zk watched           waits until somebody watches a node (embedded server only)
//	zk expire            expires all sessions (embedded server only)
//	zk unclosable        closes no session from now on (embedded server only)
//	zk stop              stops the server (embedded server only)
//	await FILE [PATTERN] waits until a file is there, and has a line that matches
//
// Conditions: [real] is a real ZooKeeper.
func TestScripts(t *testing.T) { runScripts(t, false, []string{"*"}, embeddedServer) }

// serversOwn are the scripts in which a server's own behaviour shows: which containers and
// session timeouts it has, its tokens, its limits, and when it expires a session.
var serversOwn = []string{"doctor", "group", "killed", "lock", "names", "semaphore"}

// TestScriptsOnARealServer runs these on Apache ZooKeeper, and with ZKRECIPES_TEST_ALL every
// script. Each script and each run has a chroot of its own.
func TestScriptsOnARealServer(t *testing.T) {
	servers := ensembletest.Shared(t).Connect()
	names := serversOwn
	if testall.On() {
		names = []string{"*"}
	}
	runScripts(t, true, names, func(env *testscript.Env) (*scriptServer, error) {
		return &scriptServer{addr: servers, chroot: "/" + filepath.Base(filepath.Dir(env.WorkDir)) + filepath.Base(env.WorkDir)}, nil
	})
}

// scriptServer is the ZooKeeper of one script.
type scriptServer struct {
	addr, chroot string
	embedded     *zkserver.Server // nil for a real one
	conn         *zk.Conn
}

func embeddedServer(env *testscript.Env) (*scriptServer, error) {
	s, err := zkserver.Listen(zkserver.Config{TickTime: 500 * time.Millisecond, MaxSessionTimeout: time.Minute})
	if err != nil {
		return nil, err
	}
	env.Defer(func() { _ = s.Close() })
	return &scriptServer{addr: s.Addr(), embedded: s}, nil
}

type serverKey struct{}

func runScripts(t *testing.T, real bool, names []string, start func(*testscript.Env) (*scriptServer, error)) {
	t.Parallel()
	var files []string
	for _, name := range names {
		found, err := filepath.Glob(filepath.Join("testdata", "script", name+".txtar"))
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no script %s (%v)", name, err)
		}
		files = append(files, found...)
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(env *testscript.Env) error {
			scripttest.Bound(env, scripttest.Limit)
			s, err := start(env)
			if err != nil {
				return err
			}
			return s.setUp(env)
		},
		Condition: func(name string) (bool, error) {
			if name != "real" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return real, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"zk": zkCommand, "await": awaitFile},
	})
}

func (s *scriptServer) setUp(env *testscript.Env) error {
	conn, _, err := zk.Connect(strings.Split(s.addr, ","), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	env.Defer(conn.Close)
	s.conn = conn
	if err := s.create(s.chroot, nil); err != nil {
		return err
	}
	env.Values[serverKey{}] = s
	env.Setenv("ZKRECIPES_SERVERS", s.addr)
	if s.chroot != "" {
		env.Setenv("ZKRECIPES_CHROOT", s.chroot)
	}
	env.Setenv("ZKRECIPES_LOG_LEVEL", "error") // not the warning of a missing checksum
	env.Setenv("GORACE", quickExit)
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	return nil
}

// quickExit has programs that were built with the race detector not sleep for a
// second before they end.
const quickExit = "atexit_sleep_ms=0"

func zkCommand(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(serverKey{}).(*scriptServer)
	verb, args := args[0], args[1:]
	if len(args) > 0 {
		args[0] = s.chroot + args[0]
	}
	switch verb {
	case "expire":
		for _, id := range s.embedded.Sessions() {
			if id != s.conn.SessionID() {
				s.embedded.ExpireSession(id)
			}
		}
	case "unclosable":
		s.embedded.SetFault(func(r zkserver.Request) zkserver.Fault {
			return zkserver.Fault{CloseBefore: r.Op == zkserver.OpCloseSession && r.SessionID != s.conn.SessionID()}
		})
	case "stop":
		ts.Check(s.embedded.Close())
	case "watched":
		eventually(ts, []string{"a watch"}, func() bool { return s.embedded.Watches() > 0 })
	case "waiting":
		eventually(ts, args, func() bool { return fmt.Sprint(len(s.line(ts, args[0]))) == args[1] })
	case "free":
		if line := s.line(ts, args[0]); len(line) > 0 {
			ts.Fatalf("%q stand in line at %s", line, args[0])
		}
	case "exists":
		eventually(ts, args, func() bool { there, _, err := s.conn.Exists(args[0]); ts.Check(err); return there })
	case "create":
		var data string
		if len(args) > 1 {
			data = args[1]
		}
		ts.Check(s.create(args[0], []byte(data)))
	case "stands":
		ts.Check(s.create(args[0], nil))
		_, err := s.conn.Create(args[0]+"/"+args[1], nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		ts.Check(err)
	case "data":
		data, _, err := s.conn.Get(args[0])
		ts.Check(err)
		if string(data) != args[1] {
			ts.Fatalf("%s holds %q", args[0], data)
		}
	case "set":
		_, err := s.conn.Set(args[0], []byte(args[1]), -1)
		ts.Check(err)
	case "secret":
		_, err := s.conn.Create(args[0], nil, 0, zk.WorldACL(zk.PermAll&^zk.PermRead))
		ts.Check(err)
	case "delete":
		ts.Check(s.conn.Delete(args[0], -1))
	case "break":
		line := s.line(ts, args[0])
		if len(line) == 0 {
			ts.Fatalf("no contenders at %s", args[0])
		}
		if len(args) > 1 {
			slices.Reverse(line)
		}
		ts.Check(s.conn.Delete(gopath.Join(args[0], line[0]), -1))
	default:
		ts.Fatalf("zk %s", verb)
	}
}

func (s *scriptServer) create(path string, data []byte) error {
	if path == "" || path == "/" {
		return nil
	}
	if err := s.create(gopath.Dir(path), nil); err != nil {
		return err
	}
	if _, err := s.conn.Create(path, data, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	return nil
}

// contender is the name of whoever stands in line: protected by a GUID, or known
// by its number.
var contender = regexp.MustCompile(`^(_c_|(lock-|n_|lease-)-?[0-9]+$)`)

// line returns who stands in line at path, in order of the sequence.
func (s *scriptServer) line(ts *testscript.TestScript, path string) (line []string) {
	children, _, err := s.conn.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		ts.Fatalf("%s: %v", path, err)
	}
	for _, name := range children {
		if contender.MatchString(name) && !strings.Contains(name, "ack_") {
			line = append(line, name)
		}
	}
	slices.SortFunc(line, func(a, b string) int { return strings.Compare(sequence(a), sequence(b)) })
	return line
}

func sequence(name string) string { return name[max(0, len(name)-10):] }

func awaitFile(ts *testscript.TestScript, _ bool, args []string) {
	pattern := ""
	if len(args) > 1 {
		pattern = args[1]
	}
	line := regexp.MustCompile("(?m)" + pattern)
	eventually(ts, args, func() bool {
		content, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && line.Match(content)
	})
}

// eventually looks again and again: what it looks at is another process.
func eventually(ts *testscript.TestScript, what []string, happened func() bool) {
	for end := time.Now().Add(watchdog.Patience); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("%v did not happen", what)
		}
	}
}
