package uptime_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// lengthEnv enables TestUptime and is its length: "1m", "2h".
const lengthEnv = "ZKRECIPES_UPTIME"

// TestUptime lets 200 sessions work for a long time through one supervised plugin, which is
// upgraded every ten minutes, or five times in a shorter run. It compares what host, plugin and
// server use:
//
//   - at the end of the last interval and at the end of the first one. What accumulates in the
//     host, in a session or on the server is found here.
//   - at the end of the last interval and at its beginning, because each upgrade replaces the
//     plugin's process.
//   - after all sessions were closed and before the first one was opened.
func TestUptime(t *testing.T) {
	text := os.Getenv(lengthEnv)
	if text == "" {
		t.Skip("run it with .ci/suite uptime")
	}
	length := must.Get(time.ParseDuration(text))(t)
	interval := min(10*time.Minute, length/6)
	server := ensembletest.Shared(t).Server(0)
	dir := socketDir(t)
	builds := builds(t, dir)
	supervisor := must.Get(host.Supervise(watchdog.Bounded(t), host.SupervisorConfig{Plugin: builds[0]}))(t)
	t.Cleanup(func() { _ = supervisor.Close(context.Background()) })
	m := meter{t, server, supervisor, dir}
	w := &work{
		T: t, open: supervisor.Open, pause: min(15*time.Second, interval/10), stop: make(chan struct{}),
		cfg: recipes.SessionConfig{Servers: []string{server.Addr()}, SessionTimeout: 40 * time.Second},
	}
	must.Do(t, must.Get(w.open(w.Context(), w.cfg))(t).Close(w.Context())) // starts goroutines and connections that stay
	idle := m.median(3, 0)

	w.start()
	defer w.end()
	var first, last change
	for i := range int(length / interval) {
		if i > 0 {
			began := time.Now()
			must.Do(t, supervisor.Upgrade(w.Context(), host.UpgradeConfig{Plugin: builds[i%len(builds)]}))
			t.Logf("an upgrade took %v", time.Since(began))
		}
		last = m.interval(interval)
		if i == 0 {
			first = last
		}
		t.Logf("%v: %d turns, %d sessions opened, %d outcomes unknown: %v", time.Duration(i+1)*interval, w.turns.Load(), w.opened.Load(), w.unknown.Load(), last.after)
		if t.Failed() {
			return
		}
	}
	change{first.after, last.after}.check(t, "from the end of the first interval to that of the last", working)
	last.check(t, "in the last interval", working)
	w.end()
	m.returnsTo(idle)
}

// socketDir is a directory with a short path, for sockets.
func socketDir(t *testing.T) string {
	dir := must.Get(os.MkdirTemp("/tmp", "zk"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// builds returns two builds of zkrecipes-plugin. They have an additional source file, with which
// they report their figures.
func builds(t *testing.T, dir string) (made []host.Config) {
	const plugin = "../../../cmd/zkrecipes-plugin"
	overlay := filepath.Join(dir, "overlay.json")
	source, target := must.Get(filepath.Abs("testdata/figures.go"))(t), must.Get(filepath.Abs(plugin+"/figures.go"))(t)
	must.Do(t, os.WriteFile(overlay, must.Get(json.Marshal(map[string]any{"Replace": map[string]string{target: source}}))(t), 0o600))
	for _, version := range []string{"v0.0.1", "v0.0.2"} {
		path := filepath.Join(dir, "zkrecipes-plugin_"+version)
		flags := "-X github.com/zkrecipes/zkrecipes/internal/version.release=" + version
		out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-ldflags", flags, "-o", path, plugin).CombinedOutput()
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		made = append(made, host.Config{Path: path, Env: []string{"FIGURES=" + dir}, Logger: hclog.NewNullLogger(), StartTimeout: watchdog.Patience})
	}
	return made
}
