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

// TestScripts runs each script with a separate in-process server, whose address is in
// ZKRECIPES_SERVERS. Commands for scripts:
//
//	zk waiting PATH N     waits until PATH has N contenders
//	zk free PATH          fails if PATH has contenders
//	zk exists PATH        waits until the znode exists
//	zk create PATH [DATA] creates a znode and its missing parents
//	zk join PATH NAME     creates an ephemeral sequential znode NAME at PATH, like another program
//	zk fill PATH NAME N   creates N ephemeral sequential znodes NAME at PATH
//	zk data PATH TEXT     fails if the znode has other data
//	zk set PATH TEXT      changes the znode's data
//	zk delete PATH        deletes the znode
//	zk secret PATH        lets no client read a znode, and creates it if it does not exist
//	zk break PATH [last]  deletes the first (or last) contender at PATH, like an operator
//	zk watched [N]        waits until N watches are armed, or one (in-process server only)
//	zk expire             expires all sessions (in-process server only)
//	zk unclosable         fails to close sessions from now on (in-process server only)
//	zk stop               stops the server (in-process server only)
//	await FILE [PATTERN]  waits until a file exists and has a line that matches
//	http FILE PATH CODE [PATTERN]
//	                      requests PATH at the address in a file until the code is CODE, and a line
//	                      matches; CODE is gone if there is no server
//	monitored FILE        fails if /metrics lacks what examples/monitoring names
//
// The condition [real] holds if the server is a real ZooKeeper.
func TestScripts(t *testing.T) { runScripts(t, false, []string{"*"}, embeddedServer) }

// serversOwn are the scripts that test behaviour of the server: containers, session timeouts,
// tokens, limits, four-letter words, and when it expires a session.
var serversOwn = []string{"doctor", "group", "killed", "lock", "names", "semaphore", "status", "top"}

// TestScriptsOnARealServer runs serversOwn on Apache ZooKeeper, and with ZKRECIPES_TEST_ALL
// every script. Each run of a script has a separate chroot.
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
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"zk": zkCommand, "await": awaitFile, "http": httpCommand, "monitored": monitored},
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
	env.Setenv("ZKRECIPES_LOG_LEVEL", "error") // no warning about a missing checksum
	env.Setenv("GORACE", quickExit)
	env.Setenv("XDG_RUNTIME_DIR", "/none") // upgrade-plugin -all finds only the script's processes
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	project, err := filepath.Abs(filepath.Join("..", ".."))
	env.Setenv("PROJECT", project)
	return err
}

// quickExit is a GORACE: without it, programs with the race detector sleep for a second before
// they exit.
const quickExit = "atexit_sleep_ms=0"

func zkCommand(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(serverKey{}).(*scriptServer)
	verb, args := args[0], args[1:]
	if len(args) > 0 && verb != "watched" {
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
		least := 1
		if len(args) > 0 {
			_, err := fmt.Sscan(args[0], &least)
			ts.Check(err)
		}
		eventually(ts, []string{fmt.Sprint(least, " watches")}, func() bool { return s.embedded.Watches() >= least })
	case "waiting":
		eventually(ts, args, func() bool { return fmt.Sprint(len(s.line(ts, args[0]))) == args[1] })
	case "free":
		if line := s.line(ts, args[0]); len(line) > 0 {
			ts.Fatalf("%s has the contenders %q", args[0], line)
		}
	case "exists":
		eventually(ts, args, func() bool { there, _, err := s.conn.Exists(args[0]); ts.Check(err); return there })
	case "create":
		var data string
		if len(args) > 1 {
			data = args[1]
		}
		ts.Check(s.create(args[0], []byte(data)))
	case "join":
		ts.Check(s.create(args[0], nil))
		_, err := s.conn.Create(args[0]+"/"+args[1], nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		ts.Check(err)
	case "fill":
		ts.Check(s.create(args[0], nil))
		var want int
		_, err := fmt.Sscan(args[2], &want)
		ts.Check(err)
		for {
			_, stat, err := s.conn.Exists(args[0])
			if err == nil && int(stat.NumChildren) >= want {
				break
			}
			ops := make([]any, min(want-int(stat.NumChildren), 1000))
			for i := range ops {
				ops[i] = &zk.CreateRequest{Path: args[0] + "/" + args[1], Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral | zk.FlagSequence}
			}
			if err == nil {
				_, err = s.conn.Multi(ops...)
			}
			if !errors.Is(err, zk.ErrConnectionClosed) { // on a busy machine; the next count shows what was committed
				ts.Check(err)
			}
		}
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
		unread := zk.WorldACL(zk.PermAll &^ zk.PermRead)
		_, err := s.conn.Create(args[0], nil, 0, unread)
		if errors.Is(err, zk.ErrNodeExists) {
			_, err = s.conn.SetACL(args[0], unread, -1)
		}
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

// contender matches the znodes of contenders: their names have a GUID, or only a number.
var contender = regexp.MustCompile(`^(_c_|(lock-|n_|lease-)-?[0-9]+$)`)

// line returns the contenders at path, in the order of their sequence numbers.
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

// eventually polls, because the event happens in another process.
func eventually(ts *testscript.TestScript, what []string, happened func() bool) {
	for end := time.Now().Add(watchdog.Patience); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("%v did not happen", what)
		}
	}
}
