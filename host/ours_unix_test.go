//go:build unix

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

func TestAPluginIsOursIfNoOtherUserCanChangeIt(t *testing.T) {
	const stranger = 54321
	for _, test := range []struct {
		name   string
		change func(above, dir, plugin string) error
		root   bool // needs to be root
		ours   bool
	}{
		{"as installed", func(_, _, _ string) error { return nil }, false, true},
		{"private", func(_, dir, plugin string) error { return first(os.Chmod(dir, 0o700), os.Chmod(plugin, 0o500)) }, false, true},
		{"the file is a group's", func(_, _, plugin string) error { return os.Chmod(plugin, 0o775) }, false, false},
		{"the file is everybody's", func(_, _, plugin string) error { return os.Chmod(plugin, 0o757) }, false, false},
		{"the directory is a group's", func(_, dir, _ string) error { return os.Chmod(dir, 0o775) }, false, false},
		{"the directory is sticky", func(_, dir, _ string) error { return os.Chmod(dir, os.ModeSticky|0o777) }, false, false},
		{"a directory above is a group's", func(above, _, _ string) error { return os.Chmod(above, 0o775) }, false, false},
		{"a directory above is sticky", func(above, _, _ string) error { return os.Chmod(above, os.ModeSticky|0o777) }, false, true},
		{"the file is a stranger's", func(_, _, plugin string) error { return os.Chown(plugin, stranger, -1) }, true, false},
		{"the directory is a stranger's", func(_, dir, _ string) error { return os.Chown(dir, stranger, -1) }, true, false},
		{"a directory above is a stranger's", func(above, _, _ string) error { return os.Chown(above, stranger, -1) }, true, false},
		{"a link", func(_, dir, plugin string) error { return moveAndLink(plugin, filepath.Join(dir, "other")) }, false, true},
		{"a link to a group's directory", func(above, _, plugin string) error {
			shared := filepath.Join(above, "shared")
			return first(os.Mkdir(shared, 0o755), moveAndLink(plugin, filepath.Join(shared, "other")), os.Chmod(shared, 0o775))
		}, false, false},
		{"a link by way of everybody's directory", func(above, dir, plugin string) error {
			tmp := filepath.Join(above, "tmp")
			return first(os.Mkdir(tmp, 0o755), os.Symlink(dir, filepath.Join(tmp, "way")), os.Chmod(tmp, os.ModeSticky|0o777),
				os.Rename(plugin, filepath.Join(dir, "other")), os.Symlink(filepath.Join(tmp, "way", "other"), plugin))
		}, false, false},
		{"missing", func(_, _, plugin string) error { return os.Remove(plugin) }, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.root && os.Geteuid() != 0 {
				t.Skip("needs to be root")
			}
			above := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			dir := filepath.Join(above, "dir")
			plugin := filepath.Join(dir, PluginName)
			must.Do(t, first(os.Mkdir(dir, 0o755), os.Chmod(above, 0o755),
				os.WriteFile(plugin, nil, 0o755), os.Chmod(plugin, 0o755), os.Chmod(dir, 0o755), test.change(above, dir, plugin)))
			if got := onlyOurs(plugin); got != test.ours {
				t.Errorf("ours: %t", got)
			}
		})
	}
}

func moveAndLink(path, target string) error {
	return first(os.Rename(path, target), os.Symlink(target, path))
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// The path of a Unix socket has room for 108 bytes or fewer.
func TestASocketIsCreatedWhereItsPathFits(t *testing.T) {
	short, err := os.MkdirTemp("/tmp", "zk")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.Remove(short) })
	long := "/tmp/" + strings.Repeat("long", 30)
	for _, tt := range []struct{ temp, runtime, want string }{
		{short, "/nowhere", short},
		{long, short, short},
		{"/nowhere", short, short},
		{long, long, "/tmp"},
		{long, "", "/tmp"},
		{"/proc", short, short}, // not even root can write there
		{"/proc", "/proc", "/tmp"},
	} {
		t.Setenv("TMPDIR", tt.temp)
		t.Setenv("XDG_RUNTIME_DIR", tt.runtime)
		if got, err := socketBase(); err != nil || got != tt.want {
			t.Errorf("TMPDIR %s, XDG_RUNTIME_DIR %s: %s, %v; want %s", tt.temp, tt.runtime, got, err, tt.want)
		}
	}
}
