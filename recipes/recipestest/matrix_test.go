package recipestest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hosttest"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/recipestest"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func TestMain(m *testing.M) {
	leaktest.Main(leaktest.SideBySide{Tests: ensembletest.Owner{Tests: m}})
}

// TestContract runs the contract over every transport. make test-all runs each transport on every
// kind of server. Other runs use one kind for each transport; without a real server, they use the
// embedded one for all.
func TestContract(t *testing.T) {
	selected := false
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			for _, server := range servers {
				t.Run(server.name, func(t *testing.T) {
					selected = true // and perhaps skipped
					if server.name != transport.server && ensembletest.Found() {
						testall.Require(t)
					}
					recipestest.Run(t, recipestest.Env{Open: transport.opener(t), Servers: server.start(t)})
				})
			}
		})
	}
	if !selected {
		t.Error("-run selects no transport and server; the names of the tests are TestContract/TRANSPORT/SERVER/contract/GROUP/TEST")
	}
}

// A pattern that selects no test of the contract fails, and says how they are named.
func TestAPatternThatSelectsNoContractTestFails(t *testing.T) {
	for pattern, passes := range map[string]bool{
		"^TestContract$/^in-memory$/^embedded$/^contract$/^latch$": true,
		"^TestContract$/^in-memory$/^embedded$/^latch$":            false, // without "contract"
		"^TestContract$/^in-memory$/^embedded$/^contract$/^no$":    false,
		"^TestContract$/^in-memory$/^embedded$/^contract$/./^no$":  false,
		"^TestContract$/^memory$":                                  false,
		"^TestContract$/^in-memory$/^none$":                        false,
	} {
		t.Run(pattern, func(t *testing.T) {
			out, err := exec.CommandContext(watchdog.Bounded(t), os.Args[0], "-test.short", "-test.run="+pattern).CombinedOutput()
			if (err == nil) != passes || !passes && !strings.Contains(string(out), "-run selects no") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

var transports = []struct {
	name, server string
	opener       func(*testing.T) recipes.Opener
}{
	{"direct", "real", func(*testing.T) recipes.Opener { return zookeeper.Open }},
	{"in-memory", "embedded", func(t *testing.T) recipes.Opener { return through(t, hosttest.New(t)) }},
	{"plugin", "real", func(t *testing.T) recipes.Opener {
		if testing.Short() {
			t.Skip("SKIPPED through the plugin process: -short")
		}
		return through(t, hosttest.NewProcess(t, host.Config{StartTimeout: watchdog.Patience}))
	}},
}

// through returns the opener of the world's plugin. When the test ends, the plugin must close
// without another error than that of a session that the test has cut off.
func through(t *testing.T, w *hosttest.World) recipes.Opener {
	t.Cleanup(func() {
		if err := w.Plugin.Close(context.WithoutCancel(t.Context())); !errors.Is(err, recipes.ErrUnknownOutcome) {
			must.Report(t, err)
		}
	})
	return w.Plugin.Open
}

var servers = []struct {
	name  string
	start func(*testing.T) func(testing.TB) []string
}{
	{"embedded", func(t *testing.T) func(testing.TB) []string {
		addr := embedded(t).Addr()
		return func(testing.TB) []string { return []string{addr} }
	}},
	{"real", func(t *testing.T) func(testing.TB) []string {
		// Each test asks for the servers, so that each counts as one on a real server.
		return func(tb testing.TB) []string { return ensembletest.Shared(tb).Addrs() }
	}},
}

// embedded starts an in-process server that grants the session timeouts of ensembletest.Quick
// and deletes empty containers at the same interval.
func embedded(t testing.TB) *zkserver.Server {
	t.Helper()
	s, err := zkserver.Listen(zkserver.Config{
		TickTime:          200 * time.Millisecond,
		MaxSessionTimeout: time.Minute,
		ReapInterval:      250 * time.Millisecond,
	})
	must.Do(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}
