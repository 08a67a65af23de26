package host_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

const (
	// roleEnv selects the program that the test binary runs.
	roleEnv = "TEST_ROLE"
	// reportEnv is the address of the test's socket, to which a role sends reports. The
	// end of the connection shows the test that the process has died.
	reportEnv = "TEST_REPORT"
	// serverEnv, timeoutEnv and callEnv give a host its server, its session timeout and the
	// call in which a process dies.
	serverEnv  = "TEST_SERVER"
	timeoutEnv = "TEST_TIMEOUT"
	callEnv    = "TEST_CALL"
)

// quickExit disables the race detector's sleep of a second at exit. During that sleep an
// upgrade would kill the plugin.
const quickExit = "GORACE=atexit_sleep_ms=0"

var roles = map[string]func(){
	"plugin":            servePlugin,
	"host":              runHost,
	"debugged":          serveDebugged,
	"real plugin":       realPlugin,
	"lingering plugin":  lingeringPlugin,
	"cut-off plugin":    cutOffPlugin,
	"killed in resume":  killedInResume,
	"keeping plugin":    keepingPlugin,
	"leaving plugin":    leavingPlugin,
	"real host":         runRealHost,
	"outlived host":     runOutlivedHost,
	"child":             runChild,
	"environment":       reportEnvironment,
	"newer plugin":      func() { serveVersions(additions(), everyService, 1, 2) },
	"much newer plugin": func() { serveVersions(nil, everyService, 2) },
	"older plugin":      serveOlder,
	"unary plugin":      serveUnary,
	"traced plugin":     serveTraced,
	"hostile":           func() { hostile(); servePlugin() },
	"noisy":             func() { fmt.Println("hello from init"); servePlugin() },
	"dying":             func() { fmt.Fprintln(os.Stderr, "cannot find my\nconfiguration"); os.Exit(3) },
	"mute":              mute,
	"finder":            runFinder,
	"silent":            func() { report("silent", fmt.Sprint(os.Getpid())); watchdog.Hang() },
}

// check panics on an error: a role has no test that it could fail.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// report connects to the test and sends the words. The connection lasts until the process
// ends.
func report(words ...string) net.Conn {
	address := os.Getenv(reportEnv)
	if address == "" {
		return nil
	}
	conn, err := net.Dial("tcp", address)
	check(err)
	fmt.Fprintln(conn, strings.Join(words, " "))
	return conn
}

func reportEnvironment() {
	all, err := json.Marshal(os.Environ())
	check(err)
	report("environment", string(all))
}

// opener opens sessions on a server in this process. closing, if not nil, is called before the server
// closes a session.
func opener(closing func()) recipes.Opener {
	srv := zkserver.New(zkserver.Config{MinSessionTimeout: time.Millisecond, MaxSessionTimeout: time.Hour})
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op == zkserver.OpCloseSession && closing != nil {
			closing()
		}
		return zkserver.Fault{}
	})
	return zookeeper.Dialer(zktest.LinkTo(srv.ServeConn).Dial).Open
}

// servePlugin is a plugin with a server of its own.
func servePlugin() {
	reports := report("plugin", fmt.Sprint(os.Getpid()))
	plugin.Serve(opener(func() {
		// Stderr can be a pipe without a reader. The plugin must still close
		// the session.
		fmt.Fprintln(realStderr, "closing a session")
		if reports != nil {
			fmt.Fprintln(reports, "closed")
		}
	}))
}

// serveDebugged is a plugin that was started without a host.
func serveDebugged() {
	check(plugin.Debug(context.Background(), opener(nil), func(_, value string) { report("debugged", value) }))
}

// realStderr is the process's stderr. go-plugin replaces os.Stderr.
var realStderr = os.Stderr

// hostsPlugin is the plugin of a host role. It reports to the test too.
func hostsPlugin(role string) host.Config {
	self, err := os.Executable()
	check(err)
	return host.Config{Path: self, Env: []string{roleEnv + "=" + role, reportEnv, quickExit}}
}

// hostsSession is the session of a host role.
func hostsSession(open recipes.Opener) recipes.Client {
	timeout, err := time.ParseDuration(os.Getenv(timeoutEnv))
	check(err)
	server := cmp.Or(os.Getenv(serverEnv), "server")
	s, err := open(context.Background(), recipes.SessionConfig{Servers: []string{server}, SessionTimeout: timeout})
	check(err)
	return s
}

// runHost is a host that launches a plugin and holds a lock until its session is lost.
func runHost() {
	p, err := host.Launch(context.Background(), hostsPlugin("plugin"))
	check(err)
	s := hostsSession(p.Open)
	_, err = lockOf(context.Background(), s)
	check(err)
	report("host", "holds")
	<-s.Done()
}

// hostile writes lines that made hosts panic, hang or lose the start of a line.
func hostile() {
	for _, line := range []string{
		`{"@level":5,"@message":"a number"}`,
		`{"@level":null}`,
		`{"@level":"info","@message":["a","list"]}`,
		`{"@timestamp":{}}`,
		`{"@level":"warn","@message":"honest","@timestamp":"yesterday"}`,
		`null`, `[]`, `{`, `{"a":1}{"b":2}`, "\x00\xff\xfe",
		`{"@level":1,"pad":"` + strings.Repeat("x", 200<<10) + `"}`,
		strings.Repeat("y", 1<<20),
		`{"@level":"warn","@message":"the last line"}`,
	} {
		fmt.Fprintln(os.Stderr, line)
	}
}

// mute does the handshake, but never answers on a connection. It reports when the host has
// connected.
func mute() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Printf("1|1|tcp|%s|grpc|%s\n", l.Addr(), "")
	conn, err := l.Accept()
	check(err)
	defer conn.Close() // never: it keeps the connection open
	report("mute")
	watchdog.Hang()
}
