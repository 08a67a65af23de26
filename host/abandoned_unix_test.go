//go:build unix

package host_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// killedTogether starts a host with a plugin, and kills both at once. It returns the
// directory that they leave in tmp.
func killedTogether(t *testing.T, tmp string) string {
	t.Helper()
	before := socketsBelow(t, tmp)
	r := listen(t)
	cmd := startRole(t, "host", "TMPDIR="+tmp, r.env(), timeoutEnv+"=1h")
	process := r.accept(t, "plugin")
	r.accept(t, "host")
	signal(t, cmd.Process.Pid, syscall.SIGSTOP) // it must not notice that its plugin has died
	var stopped syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &stopped, syscall.WUNTRACED, nil); err != nil || !stopped.Stopped() {
		t.Fatalf("the host has not stopped: %v, %v", stopped, err)
	}
	signal(t, process.pid(t), syscall.SIGKILL)
	process.died(t)
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait()
	left := slices.DeleteFunc(socketsBelow(t, tmp), func(path string) bool { return slices.Contains(before, path) })
	if len(left) != 1 {
		t.Fatalf("left behind: %q", left)
	}
	age(t, left[0])
	return filepath.Dir(left[0])
}

func socketsBelow(t *testing.T, tmp string) []string {
	t.Helper()
	return must.Get(filepath.Glob(filepath.Join(tmp, "plugin-dir*", "*")))(t)
}

// age makes a socket old enough to be removed.
func age(t *testing.T, socket string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	must.Do(t, os.Chtimes(socket, old, old))
}

// deadSocket creates a socket in dir on which no process listens.
func deadSocket(t *testing.T, dir string) string {
	t.Helper()
	must.Do(t, os.MkdirAll(dir, 0o700))
	path := filepath.Join(dir, "plugin1")
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	must.Do(t, l.Close())
	age(t, path)
	return path
}

// TestLaunchRemovesWhatKilledProcessesLeft: a host and a plugin that were killed together
// leave a socket. The next start by the same user removes it, but nothing that is in use or
// belongs to another program.
func TestLaunchRemovesWhatKilledProcessesLeft(t *testing.T) {
	tmp := shortTempDir(t)
	r := listen(t)
	startRole(t, "host", "TMPDIR="+tmp, r.env(), timeoutEnv+"=1h")
	other := r.accept(t, "plugin")
	r.accept(t, "host")
	removed := []string{killedTogether(t, tmp), filepath.Join(tmp, "plugin-dir10")}
	deadSocket(t, removed[1])
	kept := map[string]func(dir string){
		"plugin-dir20": func(dir string) { must.Do(t, os.Mkdir(dir, 0o700)) }, // empty
		"plugin-dir21": func(dir string) { // a plugin without a host
			must.Do(t, os.Mkdir(dir, 0o700))
			l := must.Get(net.Listen("unix", filepath.Join(dir, "plugin1")))(t)
			t.Cleanup(func() { _ = l.Close() })
			age(t, filepath.Join(dir, "plugin1"))
		},
		"plugin-dir22": func(dir string) { // a host whose plugin starts
			deadSocket(t, dir)
			f := must.Get(os.Open(dir))(t)
			t.Cleanup(func() { _ = f.Close() })
			must.Do(t, syscall.Flock(int(f.Fd()), syscall.LOCK_SH))
		},
		"plugin-dir23": func(dir string) { // the same without a lock
			now := time.Now()
			must.Do(t, os.Chtimes(deadSocket(t, dir), now, now))
		},
		"plugin-dir24": func(dir string) {
			deadSocket(t, dir)
			file := filepath.Join(dir, "plugin2")
			must.Do(t, os.WriteFile(file, nil, 0o600))
			age(t, file)
		},
		"plugin-dir25": func(dir string) {
			must.Do(t, os.Rename(deadSocket(t, dir), filepath.Join(dir, "socket")))
		},
		"plugin-dir26": func(dir string) {
			deadSocket(t, filepath.Join(tmp, "elsewhere"))
			must.Do(t, os.Symlink("elsewhere", dir))
		},
		"plugin-directory": func(dir string) { deadSocket(t, dir) },
	}
	if os.Geteuid() == 0 {
		kept["plugin-dir27"] = func(dir string) {
			deadSocket(t, dir)
			must.Do(t, os.Chown(dir, 65534, -1))
		}
	}
	for name, create := range kept {
		create(filepath.Join(tmp, name))
	}
	before := socketsBelow(t, tmp)

	t.Setenv("TMPDIR", tmp)
	p := launch(t, config(t, "plugin"))
	for _, dir := range removed {
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("%s was not removed: %v", dir, err)
		}
	}
	after := socketsBelow(t, tmp)
	if len(after) != len(before)-len(removed)+1 { // the new plugin's
		t.Errorf("before %q, after %q", before, after)
	}
	for name := range kept {
		if _, err := os.Lstat(filepath.Join(tmp, name)); err != nil {
			t.Error(err)
		}
	}
	if !runs(other.pid(t)) {
		t.Error("the other host's plugin has ended")
	}
	must.Report(t, p.Close(ctx(t)))
}

// TestHostLocksItsSocketDirectory: systemd-tmpfiles, and the starts of other hosts, remove
// nothing from a directory that they cannot lock.
func TestHostLocksItsSocketDirectory(t *testing.T) {
	tmp := shortTempDir(t)
	t.Setenv("TMPDIR", tmp)
	launch(t, config(t, "plugin"))
	f := must.Get(os.Open(filepath.Dir(socketsBelow(t, tmp)[0])))(t)
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EWOULDBLOCK {
		t.Errorf("locked by another process: %v", err)
	}
}
