package recipestest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestMain(m *testing.M) {
	if instructions := os.Getenv(hostEnv); instructions != "" {
		beHost(instructions)
		return
	}
	leaktest.Main(leaktest.SideBySide{Tests: withPlugin{ensembletest.Owner{Tests: m}}})
}

// withPlugin runs the tests and removes the plugin that they have built.
type withPlugin struct{ tests interface{ Run() int } }

func (w withPlugin) Run() int {
	defer func() {
		if built.dir != "" {
			os.RemoveAll(built.dir)
		}
	}()
	return w.tests.Run()
}

// built is the plugin, built from the working tree once for each run of the tests.
var built struct {
	once      sync.Once
	dir, path string
	err       error
}

func pluginPath(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED through the plugin process: -short")
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "recipestest-"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "zkrecipes-plugin")
		if runtime.GOOS == "windows" {
			built.path += ".exe"
		}
		cmd := exec.Command("go", "build", "-o", built.path, "github.com/zkrecipes/zkrecipes/cmd/zkrecipes-plugin")
		if output, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, output)
		}
	})
	if built.err != nil {
		t.Fatalf("build the plugin: %v", built.err)
	}
	return built.path
}

// launch starts the plugin for one test.
func launch(t testing.TB) *host.Plugin {
	t.Helper()
	p, err := host.Launch(t.Context(), host.Config{Path: pluginPath(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closePlugin(t, p) })
	return p
}

// closePlugin closes a plugin. The plugin may have exited, and the close of a session may be
// unconfirmed if its test has stopped the server.
func closePlugin(t testing.TB, p *host.Plugin) {
	t.Helper()
	select {
	case <-p.Exited():
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // clean-up: the server may not answer
	defer cancel()
	if err := p.Close(ctx); err != nil && !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Error(err)
	}
}
