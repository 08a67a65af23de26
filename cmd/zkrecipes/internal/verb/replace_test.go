//go:build unix

package verb

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestReplaceKeepsWhatAFileIs: its mode, its owner and the link to it.
func TestReplaceKeepsWhatAFileIs(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	must.Do(t, os.WriteFile(file, []byte("old and longer"), 0o600))
	must.Do(t, os.Chmod(file, 0o640))
	must.Do(t, os.Symlink("file", link))
	if os.Geteuid() == 0 { // as under sudo
		must.Do(t, os.Chown(file, 4711, 4712))
	}
	was := must.Get(os.Stat(file))(t)
	must.Do(t, Replace(link, []byte("new"), 0o644))
	is := must.Get(os.Stat(file))(t)
	a, b := was.Sys().(*syscall.Stat_t), is.Sys().(*syscall.Stat_t)
	if is.Mode() != was.Mode() || a.Uid != b.Uid || a.Gid != b.Gid || must.Get(os.Lstat(link))(t).Mode()&os.ModeSymlink == 0 {
		t.Errorf("mode %v, owner %d:%d; it was %v, %d:%d", is.Mode(), b.Uid, b.Gid, was.Mode(), a.Uid, a.Gid)
	}
	if text := must.Get(os.ReadFile(link))(t); string(text) != "new" {
		t.Errorf("%q", text)
	}
	fresh := filepath.Join(dir, "fresh")
	must.Do(t, Replace(fresh, []byte("x"), 0o666))
	must.Do(t, os.WriteFile(filepath.Join(dir, "written"), nil, 0o666))
	if mode, want := must.Get(os.Stat(fresh))(t).Mode(), must.Get(os.Stat(filepath.Join(dir, "written")))(t).Mode(); mode != want {
		t.Errorf("a new file has the mode %v, want %v", mode, want)
	}
	must.Do(t, Replace(os.DevNull, []byte("x"), 0o600))
	if must.Get(os.Stat(os.DevNull))(t).Mode().IsRegular() {
		t.Fatal("the null device was replaced")
	}
	if all := must.Get(os.ReadDir(dir))(t); len(all) != 4 {
		t.Errorf("the directory has %v", all)
	}
}

// TestReplaceLeavesNothingBehind: after an error there is no file.
func TestReplaceLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	if err := Replace(filepath.Join(dir, "none", "file"), nil, 0o600); err == nil {
		t.Error("no error without a directory")
	}
	must.Do(t, os.Symlink("none/file", filepath.Join(dir, "link")))
	full := filepath.Join(dir, "full")
	must.Do(t, os.Symlink("/dev/full", full))
	if _, err := os.Stat("/dev/full"); err == nil && Replace(full, []byte("x"), 0o600) == nil {
		t.Error("no error on a full device")
	}
	if all := must.Get(os.ReadDir(dir))(t); len(all) != 2 {
		t.Errorf("the directory has %v", all)
	}
}
