//go:build unix

package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestPluginThatOthersCouldReplaceIsRefused: both Find and Launch return ErrUnsafe.
func TestPluginThatOthersCouldReplaceIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		mode os.FileMode
		file func(plugin string) string // gets the mode
		safe bool
	}{
		{"file", 0o757, func(p string) string { return p }, false},
		{"directory", 0o777, filepath.Dir, false},
		{"sticky directory", os.ModeSticky | 0o777, filepath.Dir, false},
		{"directory above", 0o777, func(p string) string { return filepath.Dir(filepath.Dir(p)) }, false},
		{"sticky directory above", os.ModeSticky | 0o777, func(p string) string { return filepath.Dir(filepath.Dir(p)) }, true},
		{"private", 0o700, func(p string) string { return p }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			dir := filepath.Join(w.config, "plugins")
			plugin := install(t, dir, host.PluginName)
			must.Do(t, os.Chmod(test.file(plugin), test.mode))
			_, err := host.Find(dir)
			if errors.Is(err, host.ErrUnsafe) == test.safe {
				t.Errorf("Find: %v", err)
			}
			_, err = host.Launch(ctx(t), host.Config{Path: plugin})
			if errors.Is(err, host.ErrUnsafe) == test.safe {
				t.Errorf("Launch: %v", err)
			}
		})
	}
}

// TestEveryLinkToAPluginIsChecked: the executable, or the directory that contains it, is
// reached by links. A user that may replace a link or its target chooses the plugin.
func TestEveryLinkToAPluginIsChecked(t *testing.T) {
	for _, linked := range []string{"plugin", "directory"} {
		for _, open := range []string{"first", "between", "last"} {
			t.Run(linked+" "+open, func(t *testing.T) {
				w := newWorld(t)
				target := install(t, filepath.Join(w.config, "last"), host.PluginName)
				if linked == "directory" {
					target = filepath.Dir(target)
				}
				path := filepath.Join(w.config, "first", filepath.Base(target))
				for _, link := range [][2]string{{"../between/link", path}, {target, filepath.Join(w.config, "between", "link")}} {
					must.Do(t, os.Mkdir(filepath.Dir(link[1]), 0o755))
					must.Do(t, os.Symlink(link[0], link[1]))
				}
				if linked == "directory" {
					path = filepath.Join(path, host.PluginName)
				}
				must.Get(host.Find(filepath.Dir(path)))(t)
				must.Do(t, os.Chmod(filepath.Join(w.config, open), 0o777))
				if _, err := host.Find(filepath.Dir(path)); !errors.Is(err, host.ErrUnsafe) {
					t.Errorf("Find: %v", err)
				}
				if _, err := host.Launch(ctx(t), host.Config{Path: path}); !errors.Is(err, host.ErrUnsafe) {
					t.Errorf("Launch: %v", err)
				}
			})
		}
	}
}

// TestStrangersPluginInTheWorkingDirectoryIsRefused: a user that creates a directory must not
// choose the program that others run there. The test changes a file's owner, so it has to be
// root.
func TestStrangersPluginInTheWorkingDirectoryIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	w := newWorld(t)
	dir := filepath.Join(w.work, ".zkrecipes.d", "plugins")
	for _, mine := range []string{dir, install(t, dir, host.PluginName)} {
		must.Do(t, os.Chown(mine, 12345, 12345))
		if _, err := host.Find(""); !errors.Is(err, host.ErrUnsafe) {
			t.Errorf("%s of a stranger: %v", mine, err)
		}
		if _, err := host.Find(dir); err != nil {
			t.Errorf("configured: %v", err)
		}
		must.Do(t, os.Chown(mine, 0, 0))
	}
}

// TestFileThatCannotBeExecutedIsNoPlugin: Find does not return such a plugin.
func TestFileThatCannotBeExecutedIsNoPlugin(t *testing.T) {
	for name, place := range map[string]func(path string) error{
		"data":      func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"bad link":  func(path string) error { return os.Symlink("nowhere", path) },
	} {
		w := newWorld(t)
		must.Do(t, place(filepath.Join(w.config, host.PluginName)))
		if path, err := host.Find(w.config); !errors.Is(err, host.ErrNotFound) {
			t.Errorf("%s: %s, %v", name, path, err)
		}
	}
}
