//go:build unix

package host_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// upgrade replaces the plugin by another process of the same program.
func (v *surviving) upgrade() {
	v.Helper()
	before := v.supervisor.Plugin()
	must.Do(v, v.supervisor.Upgrade(ctx(v), v.another()))
	select {
	case <-before.Exited():
	default:
		v.Error("the old plugin was not cleaned up")
	}
	if now := v.supervisor.Plugin(); now == before || runs(before.PID()) {
		v.Fatalf("process %d was replaced by %d; the old one runs: %t", before.PID(), now.PID(), runs(before.PID()))
	}
	if state := v.session.State(); state != recipes.Connected {
		v.Fatalf("upgraded, the session is %v: %v", state, v.session.Err())
	}
}

func (v *surviving) another() host.UpgradeConfig {
	return host.UpgradeConfig{Plugin: config(v, "real plugin")}
}

// TestARestartAfterAnUpgradeStartsTheNewPlugin: it uses the Config of the upgrade.
func TestARestartAfterAnUpgradeStartsTheNewPlugin(t *testing.T) {
	t.Parallel()
	v, reports := survive(t), listen(t)
	must.Do(t, v.supervisor.Upgrade(ctx(t), host.UpgradeConfig{Plugin: config(t, "real plugin", reports.env())}))
	first := reports.accept(t, "plugin")
	v.kill()
	if again := reports.accept(t, "plugin").pid(t); again == first.pid(t) || again != v.supervisor.Plugin().PID() {
		t.Errorf("process %d was restarted, and %d runs", again, v.supervisor.Plugin().PID())
	}
}

// TestNoTwoPluginsServeASession: the old plugin was reaped before the new one connects to
// ZooKeeper, even if the old one was frozen. So it cannot wake up and close the session.
func TestNoTwoPluginsServeASession(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	old, resumed := new(atomic.Int64), new(atomic.Int64)
	server := zkserver.New(zkserver.Config{MinSessionTimeout: time.Millisecond, MaxSessionTimeout: time.Hour})
	served := make(chan error, 1)
	go func() { served <- server.Serve(watched{l, t, old, resumed}) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	s := must.Get(host.Supervise(ctx(t), host.SupervisorConfig{Plugin: config(t, "real plugin")}))(t)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	session := must.Get(s.Open(ctx(t), recipes.SessionConfig{Servers: []string{l.Addr().String()}, SessionTimeout: longTimeout}))(t)
	h := must.Get(lockAt(t, session, "/l").Acquire(ctx(t)))(t)
	for _, frozen := range []bool{false, true} {
		pid := s.Plugin().PID()
		old.Store(int64(pid))
		if frozen {
			signal(t, pid, syscall.SIGSTOP)
		}
		must.Do(t, s.Upgrade(ctx(t), host.UpgradeConfig{Plugin: config(t, "real plugin")}))
		if err := syscall.Kill(pid, syscall.SIGCONT); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("waking the old plugin up: %v", err)
		}
		if err := errors.Join(h.Err(), h.Write(ctx(t))); err != nil {
			t.Errorf("frozen %t: %v", frozen, err)
		}
	}
	must.Report(t, h.Release(ctx(t)))
	if n := resumed.Load(); n < 2 {
		t.Errorf("the session was resumed %d times", n)
	}
}

// watched is a listener that checks that the old plugin was reaped when a session is resumed.
type watched struct {
	net.Listener
	t            *testing.T
	old, resumed *atomic.Int64
}

func (w watched) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	return &watchedConn{Conn: c, in: w}, err
}

// watchedConn reads the first request, which contains the id of a resumed session.
type watchedConn struct {
	net.Conn
	in    watched
	first []byte
}

func (w *watchedConn) Read(b []byte) (int, error) {
	const id, end = 4 + 4 + 8 + 4, 4 + 4 + 8 + 4 + 8 // length, version, zxid, timeout, session
	n, err := w.Conn.Read(b)
	if missing := end - len(w.first); missing > 0 {
		w.first = append(w.first, b[:min(n, missing)]...)
		resumes := len(w.first) == end && binary.BigEndian.Uint64(w.first[id:]) != 0
		if resumes {
			w.in.resumed.Add(1)
		}
		if pid := w.in.old.Load(); resumes && pid != 0 && runs(int(pid)) {
			w.in.t.Errorf("a session is resumed while plugin %d exists", pid)
		}
	}
	return n, err
}

// TestAnUpgradeThatFailsChangesNothing: the old plugin keeps serving, and the new one has ended.
func TestAnUpgradeThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	v := survive(t)
	h := v.holds("/l")
	pid := v.supervisor.Plugin().PID()
	events := v.session.Events(ctx(t))
	<-events
	silent := config(t, "silent")
	silent.StartTimeout = 200 * time.Millisecond
	checked := config(t, "real plugin")
	checked.Checksum = "00"
	for name, test := range map[string]struct {
		cfg  host.Config
		want error
	}{
		"missing":  {host.Config{Path: filepath.Join(t.TempDir(), "missing")}, host.ErrNotUpgraded},
		"checksum": {checked, host.ErrChecksum},
		"dying":    {config(t, "dying"), host.ErrNotUpgraded},
		"silent":   {silent, host.ErrNotUpgraded},
		"newer":    {config(t, "much newer plugin"), host.ErrVersion},
		"older":    {config(t, "older plugin"), host.ErrLosesSessions},
		"unable":   {config(t, "plugin"), host.ErrLosesSessions},
	} {
		err := v.supervisor.Upgrade(ctx(t), host.UpgradeConfig{Plugin: test.cfg})
		if !errors.Is(err, host.ErrNotUpgraded) || !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := errors.Join(h.Err(), h.Write(ctx(t))); err != nil {
			t.Errorf("%s: the hold: %v", name, err)
		}
	}
	if now := v.supervisor.Plugin().PID(); now != pid {
		t.Errorf("plugin %d runs, and not %d", now, pid)
	}
	select {
	case e := <-events:
		t.Errorf("the session got %+v", e)
	default:
	}
	v.kill() // restarts use the old configuration too
}

// TestAnUpgradeRefusesToLoseSessions: it starts nothing, unless LoseSessions allows the loss.
func TestAnUpgradeRefusesToLoseSessions(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]bool{"not resumed": true, "cannot resume": false} {
		t.Run(name, func(t *testing.T) {
			s := must.Get(host.Supervise(ctx(t), host.SupervisorConfig{Plugin: config(t, "plugin"), LoseSessions: lose}))(t)
			defer s.Close(context.Background())
			h, pid := acquire(t, supervised(t, s)), s.Plugin().PID()
			err := s.Upgrade(ctx(t), host.UpgradeConfig{Plugin: config(t, "dying")})
			if !errors.Is(err, host.ErrLosesSessions) || !errors.Is(err, host.ErrNotUpgraded) || h.Err() != nil {
				t.Fatalf("%v; the hold: %v", err, h.Err())
			}
			must.Do(t, s.Upgrade(ctx(t), host.UpgradeConfig{Plugin: config(t, "newer plugin"), LoseSessions: true}))
			closes(t, "Done", h.Done())
			if !errors.Is(h.Err(), recipes.ErrClosed) || runs(pid) {
				t.Errorf("%v; the old one runs: %t", h.Err(), runs(pid))
			}
			acquire(t, supervised(t, s))
			if info, err := s.Plugin().Info(ctx(t)); err != nil || info.Version != "another" {
				t.Error(info, err)
			}
		})
	}
}
