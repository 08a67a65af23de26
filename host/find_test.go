package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// world is a machine without an installed plugin.
type world struct{ work, home, path, env, config string }

func newWorld(t *testing.T) world {
	t.Helper()
	top := t.TempDir()
	w := world{
		work: filepath.Join(top, "work"), home: filepath.Join(top, "home"),
		path: filepath.Join(top, "path"), env: filepath.Join(top, "env"), config: filepath.Join(top, "config"),
	}
	for _, dir := range []string{w.work, w.home, w.path, w.env, w.config} {
		must.Do(t, os.Mkdir(dir, 0o755))
	}
	t.Chdir(w.work)
	t.Setenv("HOME", w.home)
	t.Setenv("USERPROFILE", w.home)
	t.Setenv("PATH", strings.Join([]string{".", w.path}, string(os.PathListSeparator)))
	t.Setenv(host.PluginDirEnv, w.env)
	return w
}

// install creates an executable with that name in a directory.
func install(t *testing.T, dir, name string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	must.Do(t, os.MkdirAll(dir, 0o755))
	path := filepath.Join(dir, name)
	must.Do(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	return path
}

// TestSearchOrder installs the plugin in one directory after the other, in reverse order: Find
// finds each new plugin before the earlier ones.
func TestSearchOrder(t *testing.T) {
	w := newWorld(t)
	_, err := host.Find(w.config)
	if !errors.Is(err, host.ErrNotFound) {
		t.Fatal(err)
	}
	folder := filepath.Join(".zkrecipes.d", "plugins")
	install(t, w.work, host.PluginName) // Find must ignore the "." in PATH
	if path, err := host.Find(w.config); err == nil {
		t.Fatalf("found %s through the \".\" in PATH", path)
	}
	for _, dir := range []string{w.path, filepath.Join(w.home, folder), filepath.Join(w.work, folder), w.env, w.config} {
		if !strings.Contains(err.Error(), filepath.Base(dir)) {
			t.Errorf("the error does not list %s: %v", dir, err)
		}
		want := install(t, dir, host.PluginName)
		got := must.Get(host.Find(w.config))(t)
		if !sameFile(t, got, want) || !filepath.IsAbs(got) {
			t.Errorf("found %s; want %s", got, want)
		}
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x := must.Get(os.Stat(a))(t)
	y := must.Get(os.Stat(b))(t)
	return os.SameFile(x, y)
}

func TestVersionInTheNameOfThePlugin(t *testing.T) {
	for _, test := range []struct {
		name  string
		files []string
		want  string // "" means none
	}{
		{"one", []string{"zkrecipes-plugin_v1.2.3"}, "zkrecipes-plugin_v1.2.3"},
		{"the highest", []string{"zkrecipes-plugin_v1.9.0", "zkrecipes-plugin_v1.10.0", "zkrecipes-plugin_v1.2.0"}, "zkrecipes-plugin_v1.10.0"},
		{"a release is higher than its candidate", []string{"zkrecipes-plugin_v2.0.0-rc.1", "zkrecipes-plugin_v2.0.0"}, "zkrecipes-plugin_v2.0.0"},
		{"the plain name comes first", []string{"zkrecipes-plugin_v9.0.0", "zkrecipes-plugin"}, "zkrecipes-plugin"},
		{"not a version", []string{"zkrecipes-plugin_new", "zkrecipes-plugin_1.2.3", "zkrecipes-plugin-old", "zkrecipes-plugin.sha256"}, ""},
		{"another plugin", []string{"zkrecipes-pluginator", "other-plugin"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			for _, f := range test.files {
				install(t, w.config, f)
			}
			path, err := host.Find(w.config)
			if got := strings.TrimSuffix(filepath.Base(path), ".exe"); test.want != "" && got != test.want {
				t.Errorf("found %q, %v", path, err)
			}
			if test.want == "" && !errors.Is(err, host.ErrNotFound) {
				t.Errorf("found %q, %v", path, err)
			}
		})
	}
}

func TestNamedDirectoryThatIsMissingIsAnError(t *testing.T) {
	w := newWorld(t)
	install(t, w.path, host.PluginName)
	missing := filepath.Join(w.config, "missing")
	if path, err := host.Find(missing); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("%s, %v", path, err)
	}
	t.Setenv(host.PluginDirEnv, missing)
	if path, err := host.Find(""); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), host.PluginDirEnv) {
		t.Errorf("%s, %v", path, err)
	}
}

func TestLaunchFindsThePlugin(t *testing.T) {
	w := newWorld(t)
	link := filepath.Join(w.config, "zkrecipes-plugin_v0.1.0")
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	must.Do(t, os.Symlink(self(t), link))
	cfg := config(t, "plugin")
	cfg.Path, cfg.Dir = "", w.config
	out := &logged{}
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: out, Level: hclog.Warn})
	launch(t, cfg)
	if out.String() != "" {
		t.Errorf("a warning, although the directory is configured and the plugin is of this build: %q", out.String())
	}
}
