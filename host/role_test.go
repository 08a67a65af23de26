package host_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// roleEnv says which program the test binary is.
	roleEnv = "TEST_ROLE"
	// reportEnv is the address of a socket to which a role reports what it
	// does, and whose end tells that its process has died.
	reportEnv = "TEST_REPORT"
)

// quickExit has a process end as quickly with the race detector as without, which sleeps
// for a second otherwise. An upgrade would kill a plugin then.
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
	"environment":       func() { report("environment", strings.Join(os.Environ(), "\x00")) },
	"newer plugin":      func() { serveVersions(saysMore(), all, 1, 2) },
	"much newer plugin": func() { serveVersions(nil, all, 2) },
	"older plugin":      serveOlder,
	"unary plugin":      serveUnary,
	"traced plugin":     serveTraced,
	"limited plugin":    serveLimited,
	"hostile":           func() { hostile(); servePlugin() },
	"noisy":             func() { fmt.Println("hello from init"); servePlugin() },
	"dying":             func() { fmt.Fprintln(os.Stderr, "cannot find my\nconfiguration"); os.Exit(3) },
	"mute":              mute,
	"finder":            runFinder,
	"silent":            func() { report("silent"); watchdog.Hang() },
}

// report connects to the test and says something; the connection lasts as long
// as the process.
func report(words ...string) net.Conn {
	address := os.Getenv(reportEnv)
	if address == "" {
		return nil
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(conn, strings.Join(words, " "))
	return conn
}

// servePlugin is a plugin over a world of its own.
func servePlugin() {
	world := new(fake.World)
	reports := report("plugin", fmt.Sprint(os.Getpid()))
	world.OnClose = func(*fake.Session) {
		// Stderr may be a pipe that nobody reads any more; that must not keep a
		// session from being closed.
		fmt.Fprintln(realStderr, "closing a session")
		if reports != nil {
			fmt.Fprintln(reports, "closed")
		}
	}
	plugin.Serve(world.Open)
}

// serveDebugged is a plugin that no host has launched.
func serveDebugged() {
	err := plugin.Debug(context.Background(), new(fake.World).Open, func(_, value string) { report("debugged", value) })
	if err != nil {
		panic(err)
	}
}

// realStderr is kept because go-plugin replaces os.Stderr.
var realStderr = os.Stderr

// runHost is a host that launches a plugin, holds a lock, and does nothing more.
func runHost() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	p, err := host.Launch(context.Background(), host.Config{Path: self, Env: []string{roleEnv + "=plugin", reportEnv, quickExit}})
	if err != nil {
		panic(err)
	}
	timeout, err := time.ParseDuration(os.Getenv("TEST_TIMEOUT"))
	if err != nil {
		panic(err)
	}
	s, err := p.Open(context.Background(), recipes.SessionConfig{Servers: []string{"fake"}, SessionTimeout: timeout})
	if err != nil {
		panic(err)
	}
	l, err := s.Lock("/l", recipes.LockConfig{})
	if err != nil {
		panic(err)
	}
	if _, err := l.Acquire(context.Background()); err != nil {
		panic(err)
	}
	report("host", "holds")
	<-s.Done()
}

// hostile writes what has made hosts panic, hang or lose their place.
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

// mute does the handshake, takes connections, and says nothing on them.
func mute() {
	report("mute")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("1|1|tcp|%s|grpc|%s\n", l.Addr(), "")
	watchdog.Hang()
}
