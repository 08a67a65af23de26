package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestMain: the test binary is also the programs that the scripts run.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"zkrecipes":        func() { os.Exit(Main()) },
		"zkrecipes-plugin": func() { plugin.Serve(zookeeper.Open) },
	})
}

// TestScripts runs the scripts, each with a ZooKeeper server of its own whose
// address is in ZKRECIPES_SERVERS. Commands for scripts:
//
//	zk expire            expires all sessions
//	zk waiting PATH N    waits until N contenders stand in line at PATH
//	zk free PATH         fails if anybody does
//	await FILE           waits until a file is there
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   filepath.Join("testdata", "script"),
		Setup: setUp,
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"zk": zkCommand, "await": await},
	})
}

type serverKey struct{}

func setUp(env *testscript.Env) error {
	s, err := zkserver.Listen(zkserver.Config{TickTime: 500 * time.Millisecond})
	if err != nil {
		return err
	}
	env.Defer(func() { _ = s.Close() })
	env.Values[serverKey{}] = s
	env.Setenv("ZKRECIPES_SERVERS", s.Addr())
	env.Setenv("ZKRECIPES_LOG_LEVEL", "error") // not the warning of a missing checksum
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	return nil
}

func zkCommand(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(serverKey{}).(*zkserver.Server)
	switch verb := args[0]; verb {
	case "expire":
		for _, id := range s.Sessions() {
			s.ExpireSession(id)
		}
	case "waiting":
		eventually(ts, args, func() bool { return fmt.Sprint(inLine(s, args[1])) == args[2] })
	case "free":
		if n := inLine(s, args[1]); n > 0 {
			ts.Fatalf("%d stand in line at %s", n, args[1])
		}
	default:
		ts.Fatalf("zk %s", verb)
	}
}

func inLine(s *zkserver.Server, path string) (n int) {
	for _, node := range s.Tree() {
		if strings.HasPrefix(node.Path, path+"/_c_") && !strings.Contains(node.Path, "ack_") {
			n++
		}
	}
	return n
}

func await(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, args, func() bool { _, err := os.Stat(ts.MkAbs(args[0])); return err == nil })
}

// eventually looks again and again: what it looks at is another process.
func eventually(ts *testscript.TestScript, what []string, happened func() bool) {
	for end := time.Now().Add(20 * time.Second); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("%v did not happen", what)
		}
	}
}

// TestToolDoesNotCarryZooKeeper: all of it goes through the plugin.
func TestToolDoesNotCarryZooKeeper(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if strings.Contains(dep, "go-zookeeper") || strings.Contains(dep, "/recipes/zookeeper") {
			t.Errorf("zkrecipes depends on %s", dep)
		}
	}
}
