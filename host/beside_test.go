package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// pathEnv is the path of the plugin that the finder launches, like a tool's own variable.
const pathEnv = "FINDER_PLUGIN"

// runFinder is a host that finds a plugin and launches it.
func runFinder() {
	path, err := os.Getenv(pathEnv), error(nil)
	if path == "" {
		path, err = host.Find("")
	}
	fmt.Println(path)
	if err == nil {
		var p *host.Plugin
		p, err = host.Launch(context.Background(), host.Config{
			Path: os.Getenv(pathEnv), Env: []string{roleEnv + "=plugin", quickExit}, Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn}),
		})
		if err == nil {
			err = p.Close(context.Background())
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// installation is a directory with a host, the path for a plugin beside it, and the host's working
// directory.
type installation struct{ dir, host, plugin, work string }

func newInstallation(t *testing.T) installation {
	t.Helper()
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	exe := ""
	if runtime.GOOS == "windows" {
		exe = ".exe"
	}
	b := installation{dir, filepath.Join(dir, "a-host"+exe), filepath.Join(dir, host.PluginName+exe), t.TempDir()}
	must.Do(t, os.Chmod(dir, 0o755))
	copySelf(t, b.host)
	return b
}

func copySelf(t *testing.T, to string) {
	t.Helper()
	from := must.Get(os.Open(self(t)))(t)
	defer from.Close()
	out := must.Get(os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755))(t)
	_, err := io.Copy(out, from)
	must.Do(t, errors.Join(err, out.Close(), os.Chmod(to, 0o755)))
}

// run runs the host with an almost empty environment, like a cron job. It returns the path
// that the host found, and its log.
func (b installation) run(t *testing.T, path string, env ...string) (found, logged string, err error) {
	t.Helper()
	cmd := exec.CommandContext(ctx(t), path)
	cmd.Dir = b.work
	cmd.Env = append(env, roleEnv+"=finder", quickExit, "PATH=", "SYSTEMROOT="+os.Getenv("SYSTEMROOT"))
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	found, rest, _ := strings.Cut(stdout.String(), "\n")
	return found, rest + stderr.String(), err
}

// TestAPluginBesideTheProgramIsFound: a cron job or a systemd unit has only the path of the
// host.
func TestAPluginBesideTheProgramIsFound(t *testing.T) {
	b := newInstallation(t)
	if found, logged, err := b.run(t, b.host); err == nil || !strings.Contains(logged, b.dir+" (beside this program)") {
		t.Errorf("without a plugin: found %q, %v: %s", found, err, logged)
	}
	copySelf(t, b.plugin)
	install(t, filepath.Join(b.work, ".zkrecipes.d", "plugins"), host.PluginName)
	found, logged, err := b.run(t, b.host)
	if err != nil || found != b.plugin {
		t.Errorf("found %q, %v: %s", found, err, logged)
	}
	// A test binary has no version, but the two are of one build.
	if runtime.GOOS != "windows" && logged != "" {
		t.Errorf("with a plugin of its own build the host logs %q", logged)
	}

	link := filepath.Join(t.TempDir(), filepath.Base(b.host))
	if err := os.Symlink(b.host, link); err != nil {
		t.Skip(err)
	}
	if found, logged, err := b.run(t, link); err != nil || found != b.plugin {
		t.Errorf("by a link: found %q, %v: %s", found, err, logged)
	}
	chosen := install(t, t.TempDir(), host.PluginName)
	if found, _, _ := b.run(t, b.host, host.PluginDirEnv+"="+filepath.Dir(chosen)); found != chosen {
		t.Errorf("%s says %s; found %q", host.PluginDirEnv, chosen, found)
	}
}

// TestAConfiguredPluginNeedsNoChecksum: the variable or the configuration names it. A plugin
// in the home directory needs a checksum.
func TestAConfiguredPluginNeedsNoChecksum(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file's mode does not say who may write to it")
	}
	b := newInstallation(t)
	chosen := newInstallation(t)
	copySelf(t, chosen.plugin)
	for _, chooses := range []string{host.PluginDirEnv + "=" + chosen.dir, pathEnv + "=" + chosen.plugin} {
		if _, logged, err := b.run(t, b.host, chooses); err != nil || logged != "" {
			t.Errorf("%s: %v: %s", chooses, err, logged)
		}
	}
	if _, logged, err := b.run(t, b.host, "HOME="+homeWith(t)); err != nil || !strings.Contains(logged, "without a checksum: set one") || !strings.Contains(logged, "zkrecipes init") {
		t.Errorf("in the home directory: %v: %s", err, logged)
	}
}

// homeWith is a home directory with a plugin.
func homeWith(t *testing.T) string {
	home := t.TempDir()
	dir := filepath.Join(home, ".zkrecipes.d", "plugins")
	must.Do(t, os.MkdirAll(dir, 0o755))
	copySelf(t, filepath.Join(dir, host.PluginName))
	return home
}
