package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// connections returns the descriptors of this process that are connected to a Unix socket.
func connections(t testing.TB, socket string) (all []int) {
	t.Helper()
	for _, e := range must.Get(os.ReadDir("/proc/self/fd"))(t) {
		fd := must.Get(strconv.Atoi(e.Name()))(t)
		peer, err := syscall.Getpeername(fd)
		if at, ok := peer.(*syscall.SockaddrUnix); err == nil && ok && at.Name == socket {
			all = append(all, fd)
		}
	}
	return all
}

// pluginSocket returns the only plugin's socket in tmp.
func pluginSocket(t testing.TB, tmp string) string {
	t.Helper()
	sockets, err := filepath.Glob(tmp + "/*/*")
	if err != nil || len(sockets) != 1 {
		t.Fatalf("%q, %v", sockets, err)
	}
	return sockets[0]
}

func breakAll(t testing.TB, connections []int) {
	t.Helper()
	for _, fd := range connections {
		// When one connection ends, the plugin may close all others, and then this process does
		// too.
		if err := syscall.Shutdown(fd, syscall.SHUT_RDWR); err != nil && !errors.Is(err, syscall.EBADF) && !errors.Is(err, syscall.ENOTCONN) {
			t.Fatal(err)
		}
	}
}

// lifetime returns the reading end of a pipe whose writing end is open during the test.
func lifetime(t testing.TB) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	must.Do(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r
}

// TestPluginNeedsNoSocketOnceItIsConnected: systemd-tmpfiles deletes sockets in TMPDIR after
// some days. The host keeps its connection, and makes all calls on it if the connection for
// calls cannot be opened.
func TestPluginNeedsNoSocketOnceItIsConnected(t *testing.T) {
	tmp := shortTempDir(t)
	t.Setenv("TMPDIR", tmp)
	p := launch(t, config(t, "plugin"))
	socket := pluginSocket(t, tmp)
	first := connections(t, socket)
	h := acquire(t, open(t, p, time.Hour)) // opens the connection for calls
	must.Do(t, os.Remove(socket))
	must.Report(t, h.Release(ctx(t)))
	calls := slices.DeleteFunc(connections(t, socket), func(fd int) bool { return slices.Contains(first, fd) })
	if len(first) != 1 || len(calls) != 1 {
		t.Fatalf("connections %d, and %d for calls", first, calls)
	}
	breakAll(t, calls)
	eventually(t, func() string {
		n := len(connections(t, socket))
		return unless(n == 1, "%d connections", n)
	})
	h = acquire(t, open(t, p, time.Hour))
	must.Report(t, h.Release(ctx(t)))
	must.Report(t, p.Close(ctx(t)))
}

// TestUnreachablePluginEnds: a plugin whose connection breaks after its socket was deleted
// closes its sessions and exits, and the error says why. With a Lifetime the plugin would keep its
// sessions, so the host ends it. Without a Lifetime it exits by itself, possibly before the host
// checks the socket.
func TestUnreachablePluginEnds(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		t.Run("lifetime="+strconv.FormatBool(keeps), func(t *testing.T) {
			tmp := shortTempDir(t)
			t.Setenv("TMPDIR", tmp)
			r := listen(t)
			cfg := config(t, "plugin", r.env())
			if keeps {
				cfg.Lifetime = lifetime(t)
			}
			p := launch(t, cfg)
			process := r.accept(t, "plugin")
			h := acquire(t, open(t, p, time.Hour))
			socket := pluginSocket(t, tmp)
			must.Do(t, os.Remove(socket))
			breakAll(t, connections(t, socket))
			closes(t, "Done", h.Done())
			if line := process.line(t); line != "closed" {
				t.Errorf("the plugin reports %q", line)
			}
			closes(t, "Exited", p.Exited())
			_, err := p.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}})
			if !errors.Is(err, recipes.ErrPluginLost) {
				t.Error(err)
			}
			cause := "its socket is missing: stat " + socket
			if !strings.Contains(err.Error(), cause) && (keeps || !strings.HasSuffix(err.Error(), "exit status 0")) {
				t.Error(err)
			}
			empty(t, tmp)
		})
	}
}

// TestSupervisorReplacesAnUnreachablePlugin: a session is lost with its stream, because the
// plugin may have closed it. The next Open does not wait for its deadline.
func TestSupervisorReplacesAnUnreachablePlugin(t *testing.T) {
	tmp := shortTempDir(t)
	t.Setenv("TMPDIR", tmp)
	cfg := config(t, "plugin")
	cfg.Lifetime = lifetime(t)
	s := must.Get(host.Supervise(ctx(t), host.SupervisorConfig{Plugin: cfg}))(t)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	old := s.Plugin().PID()
	lost := must.Get(s.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: time.Hour}))(t)
	socket := pluginSocket(t, tmp)
	must.Do(t, os.Remove(socket))
	breakAll(t, connections(t, socket))
	closes(t, "Done", lost.Done())
	if !errors.Is(lost.Err(), recipes.ErrPluginLost) {
		t.Error(lost.Err())
	}
	again := must.Get(s.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: time.Hour}))(t)
	if p := s.Plugin(); p == nil || p.PID() == old {
		t.Error("the plugin was not replaced")
	}
	acquire(t, again)
	reaped(t, old)
	must.Report(t, s.Close(ctx(t)))
}
