//go:build unix

package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func signal(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatalf("signal %v to %d: %v", sig, pid, err)
	}
}

// runs reports whether a process exists, even as a zombie.
func runs(pid int) bool { return syscall.Kill(pid, 0) == nil }

// reaped fails if a process exists, even as a zombie.
func reaped(t *testing.T, pid int) {
	t.Helper()
	if runs(pid) {
		t.Errorf("process %d was not reaped", pid)
	}
}

// startRole starts the test binary in a role. The process is killed at the end of the test.
func startRole(t testing.TB, role string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(self(t))
	cmd.Env = append(append(os.Environ(), quickExit, roleEnv+"="+role), env...)
	cmd.Stderr = os.Stderr
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// TestPluginDiesWithItsHost kills a host with SIGKILL. Its plugin must close the session,
// whose timeout is an hour, and exit, although no process reads its stderr. It also deletes
// the files that the host cannot delete.
func TestPluginDiesWithItsHost(t *testing.T) {
	tmp := shortTempDir(t)
	r := listen(t)
	cmd := startRole(t, "host", "TMPDIR="+tmp, r.env(), timeoutEnv+"=1h")
	process := r.accept(t, "plugin")
	r.accept(t, "host")
	must.Do(t, cmd.Process.Kill())
	if line := process.line(t); line != "closed" {
		t.Errorf("the plugin reports %q", line)
	}
	process.died(t)
	empty(t, tmp)
}

func TestKilledPluginEndsItsHoldsAtOnce(t *testing.T) {
	p := launch(t, config(t, "plugin"))
	s := open(t, p, time.Hour)
	h := acquire(t, s)
	lost := h.Done()
	_, waiting := zktest.Waits(ctx(t), func(joined func(recipes.Place)) func(context.Context) (recipes.Hold, error) {
		return must.Get(s.Lock("/l", recipes.LockConfig{Joined: joined}))(t).Acquire
	})
	signal(t, p.PID(), syscall.SIGKILL)
	closes(t, "Done", lost)
	for _, err := range []error{h.Err(), h.Write(ctx(t)), h.Release(ctx(t))} {
		if !errors.Is(err, recipes.ErrPluginLost) || !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("a call of the hold: %v", err)
		}
	}
	if err := (<-waiting).Err; !errors.Is(err, recipes.ErrPluginLost) {
		t.Errorf("the waiter: %v", err)
	}
	pid := p.PID()
	closes(t, "Exited", p.Exited())
	reaped(t, pid)
	if _, err := p.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}}); !errors.Is(err, recipes.ErrPluginLost) {
		t.Error(err)
	}
	if err := s.Close(ctx(t)); !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Error(err)
	}
	must.Report(t, p.Close(ctx(t)))
}

// TestPluginHasItsOwnProcessGroup: a signal to the host's group does not reach the plugin,
// so that the host can stop its work before it releases its holds. The plugin also ignores an
// interrupt, because a host in another language can start it in the host's group.
func TestPluginHasItsOwnProcessGroup(t *testing.T) {
	p := launch(t, config(t, "plugin"))
	if group, err := syscall.Getpgid(p.PID()); err != nil || group != p.PID() {
		t.Errorf("the plugin %d is in group %d, %v; this process in %d", p.PID(), group, err, syscall.Getpgrp())
	}
	h := acquire(t, open(t, p, time.Minute))
	for range 3 {
		signal(t, p.PID(), syscall.SIGINT)
		signal(t, p.PID(), syscall.SIGHUP)
	}
	must.Report(t, h.Release(ctx(t)))
	must.Report(t, p.Close(ctx(t)))
}

func shortTempDir(t testing.TB) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("/tmp", "zk"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func empty(t *testing.T, dir string) {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		t.Errorf("left behind: %s", e.Name())
	}
}

func TestSocketDirectoryIsPrivateAndIsRemoved(t *testing.T) {
	tmp := shortTempDir(t)
	t.Setenv("TMPDIR", tmp)
	p := launch(t, config(t, "plugin"))
	sockets, err := filepath.Glob(tmp + "/*/*")
	if err != nil || len(sockets) != 1 {
		t.Fatalf("%q, %v", sockets, err)
	}
	if info, err := os.Stat(filepath.Dir(sockets[0])); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	must.Report(t, p.Close(ctx(t)))
	empty(t, tmp)

	p = launch(t, config(t, "plugin"))
	signal(t, p.PID(), syscall.SIGKILL)
	closes(t, "Exited", p.Exited()) // without Close
	empty(t, tmp)

	unstarted := filepath.Join(shortTempDir(t), "plugin")
	must.Do(t, os.WriteFile(unstarted, []byte("#!/no/such/interpreter\n"), 0o700))
	for _, cfg := range []host.Config{config(t, "dying"), {Path: unstarted}} {
		if _, err := host.Launch(ctx(t), cfg); err == nil {
			t.Error("launched")
		}
		empty(t, tmp)
	}
}

// TestUnfitTempDirectory: the path of a Unix socket has room for 108 bytes, and the root of a
// container may be read-only.
func TestUnfitTempDirectory(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	must.Do(t, os.Mkdir(long, 0o700))
	for _, dir := range []string{long, "/proc"} {
		t.Setenv("TMPDIR", dir)
		acquire(t, open(t, launch(t, config(t, "plugin")), time.Minute))
	}
}

// TestSupervisorIsClosedWhileAPluginStarts: no process is left when Close returns.
func TestSupervisorIsClosedWhileAPluginStarts(t *testing.T) {
	link, s, _ := superviseLink(t)
	r := listen(t)
	must.Do(t, os.Remove(link))
	must.Do(t, os.WriteFile(link, fmt.Appendf(nil, "#!/bin/sh\n%s %s=silent exec %s\n", r.env(), roleEnv, self(t)), 0o700))
	crash(t, s.Plugin().PID())
	pid := r.accept(t, "silent").pid(t)
	must.Report(t, s.Close(ctx(t)))
	reaped(t, pid)
}
