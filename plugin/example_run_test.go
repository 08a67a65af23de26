package plugin_test

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// pluginEnv makes the test binary the plugin of the example.
const pluginEnv = "TEST_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(pluginEnv) != "" {
		ExampleServe()
		return
	}
	leaktest.Main(m)
}

// The example has no output of its own: a host launches it.
func TestTheExampleServesAHost(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
	defer cancel()
	p := must.Get(host.Launch(ctx, host.Config{Path: must.Get(os.Executable())(t), Env: []string{pluginEnv + "=1"}, StartTimeout: watchdog.Patience}))(t)
	info := must.Get(p.Info(ctx))(t)
	if !slices.Contains(info.Capabilities, "lock") {
		t.Errorf("capabilities %q", info.Capabilities)
	}
	must.Do(t, p.Close(ctx))
}
