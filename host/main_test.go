package host_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestMain runs the tests. The test binary is also every program that they start: see roles.
func TestMain(m *testing.M) {
	if role, ok := roles[os.Getenv(roleEnv)]; ok {
		role()
		os.Exit(0)
	}
	if isExamplePlugin() {
		realPlugin()
		syscall.Exit(0) // skips the race detector's sleep, as quickExit does elsewhere
	}
	leaktest.Main(leaktest.SideBySide{Tests: ensembletest.Owner{Tests: withExamples{m}, Servers: 3}})
}

// patience bounds every wait of a test. Only a failing test waits that long.
const patience = watchdog.Patience

func ctx(t testing.TB) context.Context { t.Helper(); return watchdog.Bounded(t) }

func self(t testing.TB) string {
	t.Helper()
	return must.Get(os.Executable())(t)
}

// config returns a configuration that launches the test binary in a role.
func config(t testing.TB, role string, env ...string) host.Config {
	return host.Config{
		Path: self(t), Env: append([]string{roleEnv + "=" + role, quickExit}, env...), StartTimeout: patience,
		Logger: hclog.NewNullLogger(),
	}
}

func launch(t testing.TB, cfg host.Config) *host.Plugin {
	t.Helper()
	p := must.Get(host.Launch(ctx(t), cfg))(t)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

func open(t testing.TB, p *host.Plugin, timeout time.Duration) recipes.Client {
	t.Helper()
	return must.Get(p.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: timeout}))(t)
}

func acquire(t testing.TB, s recipes.Recipes) recipes.Hold {
	t.Helper()
	l := must.Get(s.Lock("/l", recipes.LockConfig{}))(t)
	return must.Get(l.Acquire(ctx(t)))(t)
}

// inProcess is a plugin in this process, with a server of its own.
func inProcess(t testing.TB) *host.Plugin {
	t.Helper()
	_, dial := zktest.Piped(t)
	p := must.Get(host.InProcess(dial.Open))(t)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// begin calls f in a goroutine. The channel gets f's error.
func begin(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// eventually waits until missing returns "". If it does not, the test fails with its last
// result.
func eventually(t testing.TB, missing func() string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// unless returns "" if ok is true, and otherwise the text that says what is missing.
func unless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func closes(t testing.TB, what string, ch <-chan struct{}) { t.Helper(); watchdog.Closes(t, what, ch) }
